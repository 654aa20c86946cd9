// `holdfast fleet`

import { join, resolve } from 'node:path';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Membership } from '../../fleet/member/membership.ts';
import type { Answer, Command } from '../arguments/command.ts';
import { gatewayHome, type Caller } from '../caller.ts';
import { formatDuration } from '../arguments/units.ts';
import type { Output } from '../output/output.ts';
import { alignedRows } from '../output/table.ts';
import { summaries } from '../summaries.ts';

/** Of the table, as far as the labels need it. */
const WIDTH = 120;
const verbs = [
  'demo',
  'hosts',
  'drain',
  'undrain',
  'leave',
  'key',
  'init',
  'admit',
  'forget',
] as const;
type Verb = (typeof verbs)[number];

export const command: Command = {
  name: 'fleet',
  usage:
    'demo | hosts | drain | undrain | leave | key | init | admit NAME KEY | forget NAME [--nats ADDRESS]',
  takes: verbs,
  summary: summaries.fleet,
  examples: ['holdfast fleet demo', 'holdfast fleet hosts', 'holdfast fleet drain'],
  options: {
    keys: {
      type: 'string',
      value: 'DIR',
      completes: 'directory',
      about:
        'init, admit, forget: the folder of the keys of the fleet (default: fleet-keys in the home)',
    },
    gateway: { type: 'boolean', about: 'key, admit: of a gateway, not of a host' },
    listen: {
      type: 'string',
      value: 'ADDR:PORT',
      about: 'init: where NATS listens (default 127.0.0.1:4222)',
    },
    'tls-cert': { type: 'string', value: 'FILE', about: 'init: the certificate of NATS' },
    'tls-key': { type: 'string', value: 'FILE', about: 'init: the key of that certificate' },
    store: {
      type: 'string',
      value: 'DIR',
      about: 'init: a folder on the machine of NATS for the ledger (default: no ledger)',
    },
    nats: {
      type: 'string',
      value: 'ADDRESS[,...]',
      about: 'forget: report the processes of a host that never returns as lost',
    },
    ca: {
      type: 'string',
      value: 'FILE',
      about: "forget: authority that signed NATS's certificate (default: the machine's own)",
    },
  },
  notes: [
    'demo: three nodes of NATS, three hosts and a gateway on this machine, and the death of a host. It needs nats-server.',
    'hosts: asks the gateway that runs on this machine.',
    'drain: no new processes are placed on this host; those that run continue. undrain ends that.',
    'key: prints the public key of this host; its seed stays in the home.',
    'init: makes the keys of a fleet and nats.conf. admit: signs the key of a host, and prints its admission.',
    'forget: revokes a host. Let NATS read nats.conf again: nats-server --signal reload. Then repeat it with --nats:',
    'what the host had begun is reported as lost. It is refused while the host is there.',
    'leave: this host leaves the fleet; its processes and its own server continue.',
  ],
  read({ words, caller, out }) {
    const [given = '', name, key] = words.expect(verbs.join(', '), '[NAME]', '[KEY]');
    const verb = verbs.find((each) => each === given);
    if (!verb) throw words.wrong(`"${given}" is not one of ${verbs.join(', ')}`);
    const least = { admit: 3, forget: 2 } as Partial<Record<Verb, number>>;
    if (words.plain.length !== (least[verb] ?? 1))
      throw words.wrong(verb === 'admit' ? 'give NAME and KEY' : `wrong arguments of "${verb}"`);
    const keys = resolve(caller.cwd, words.text('keys') ?? join(caller.home, 'fleet-keys'));
    const role = words.flag('gateway') ? 'gateway' : 'host';
    const [cert, tlsKey] = [words.text('tls-cert'), words.text('tls-key')];
    if ((cert === undefined) !== (tlsKey === undefined))
      throw words.wrong('give --tls-cert and --tls-key together');
    const path = (text: string): string => resolve(caller.cwd, text);
    const tls =
      cert === undefined || tlsKey === undefined
        ? undefined
        : { cert: path(cert), key: path(tlsKey) };
    const listen = words.text('listen') ?? '127.0.0.1:4222';
    const [store, nats, ca] = [words.text('store'), words.text('nats'), words.text('ca')];
    return async () => {
      await caller.refuseInside('change the fleet');
      if (verb === 'demo') return showDemo(caller, out);
      if (verb === 'hosts') return listHosts(caller);
      if (verb === 'key') return showKey(caller, role);
      if (verb === 'drain' || verb === 'undrain' || verb === 'leave')
        return changeMembership(caller, verb);
      const folder = await import('../../fleet/identity/fleet-folder.ts');
      if (verb === 'init') {
        folder.initFleet(keys, { listen, tls, store });
        const config = join(keys, folder.CONFIG);
        return { result: { keys, config }, lines: [`Start NATS with:  nats-server -c ${config}`] };
      }
      if (verb === 'forget') {
        const authority = ca === undefined ? undefined : path(ca);
        return forgetMember(keys, name ?? '', { nats, ca: authority });
      }
      const admission = folder.admit(keys, { role, name: name ?? '', key: key ?? '' });
      return { result: { name, role, admission }, lines: [admission] };
    };
  },
};

async function showDemo({ env }: Caller, out: Output): Promise<Answer> {
  const { demonstrateFleet } = await import('../local/fleet-demo.ts');
  const { Narrator } = await import('../output/narrator.ts');
  return { result: await demonstrateFleet(env, new Narrator(out)) };
}

async function forgetMember(
  keys: string,
  name: string,
  { nats, ca }: { readonly nats: string | undefined; readonly ca: string | undefined },
): Promise<Answer> {
  const folder = await import('../../fleet/identity/fleet-folder.ts');
  const revoked = nats === undefined || folder.isMember(keys, name);
  if (revoked) folder.forget(keys, name);
  const lines = revoked ? [`"${name}" is revoked once NATS has read nats.conf again.`] : [];
  if (nats === undefined) return { result: { name, revoked }, lines };
  const { forgetHost } = await import('../../fleet/ledger/forget-host.ts');
  const { checkServers, refuseOldServer, splitServers, tlsFor } =
    await import('../../fleet/wire/addresses.ts');
  const { systemClock } = await import('../../base/clock.ts');
  const { randomId } = await import('../../base/ids.ts');
  const servers = splitServers(nats);
  const as = `forget-${randomId().slice(0, 8)}`;
  const authenticator = folder.forgetter(keys, as);
  checkServers(servers, authenticator !== undefined);
  const lost = await forgetHost(
    {
      servers,
      name: as,
      authenticator,
      tls: tlsFor(servers, ca),
      refuse: refuseOldServer,
      clock: systemClock,
      report: () => undefined,
    },
    name,
  );
  const what = lost === 1 ? 'process of it is' : 'processes of it are';
  return {
    result: { name, revoked, lost },
    lines: [...lines, `"${name}" is forgotten: ${lost} ${what} reported as lost.`],
  };
}

async function showKey({ home }: Caller, role: 'host' | 'gateway'): Promise<Answer> {
  const { ownPublicKey } = await import('../../fleet/identity/credentials.ts');
  const { openHome } = await import('../../keeper/home.ts');
  const { folder } = openHome(role === 'gateway' ? gatewayHome(home) : home);
  const key = ownPublicKey(folder);
  return { result: { key }, lines: [key] };
}

async function changeMembership(
  { home }: Caller,
  verb: 'drain' | 'undrain' | 'leave',
): Promise<Answer> {
  const { readMembership, removeMembership, writeMembership } =
    await import('../../fleet/member/membership.ts');
  const member: Membership | undefined = readMembership(home);
  if (!member)
    throw new HoldfastError('not_found', `${home} belongs to no fleet.`, {
      remedy: 'Join one with "holdfast join".',
    });
  const { name } = member;
  if (verb === 'leave') {
    removeMembership(home);
    return { result: { name, left: true }, lines: [`"${name}" leaves the fleet.`] };
  }
  const drain = verb === 'drain';
  writeMembership(home, { ...member, drain });
  const line = drain
    ? `"${name}" gets no new processes; those that run continue.`
    : `"${name}" gets processes again.`;
  return { result: { name, drain }, lines: [line] };
}

interface HostRow {
  readonly name: string;
  readonly state: string;
  readonly sinceMs: number;
  readonly version: string;
  readonly live: number;
  readonly load: number;
  readonly drain: boolean;
  readonly labels: Readonly<Record<string, string>>;
}

async function listHosts(caller: Caller): Promise<Answer> {
  const { callServer } = await import('../local/call-server.ts');
  const answer = await callServer(gatewayHome(caller.home), '/v1/hosts');
  const { hosts } = answer as { hosts: readonly HostRow[] };
  const now = Date.now();
  const rows = hosts.map(({ name, state, sinceMs, version, live, load, drain, labels }) => [
    name,
    drain && state === 'here' ? 'draining' : state,
    formatDuration(Math.max(0, now - sinceMs)),
    String(live),
    load.toFixed(2),
    version,
    Object.entries(labels)
      .map(([label, value]) => `${label}=${value}`)
      .join(' '),
  ]);
  const head = ['HOST', 'STATE', 'SINCE', 'LIVE', 'LOAD', 'VERSION', 'LABELS'];
  const lines =
    rows.length === 0 ? ['The gateway knows no hosts.'] : alignedRows([head, ...rows], WIDTH);
  return { result: { hosts }, lines };
}
