// Who belongs to a fleet, and what each may do: keys, admissions, permissions and revocation, with a real NATS server.

import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { connect, nkeys, type NatsConnection } from '@nats-io/transport-node';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import {
  authenticatorOf,
  ownPublicKey,
  storeAdmission,
} from '../../src/fleet/identity/credentials.ts';
import {
  admit,
  CONFIG,
  forget,
  forgetter,
  initFleet,
} from '../../src/fleet/identity/fleet-folder.ts';
import { encodeMessage } from '../../src/fleet/wire/messages.ts';
import { forgetHost } from '../../src/fleet/ledger/forget-host.ts';
import { checkPublicKey, keyFromSeed, newKey } from '../../src/fleet/identity/nkeys.ts';
import { Fabric } from '../../src/fleet/wire/fabric.ts';
import { checkServers, refuseOldServer, tlsFor } from '../../src/fleet/wire/addresses.ts';
import { gatewayTo, joined, seen, written } from '../support/fleet.ts';
import { inProcess, onCleanup, OWNER, startProcess, temporaryFolder } from '../support/hosts.ts';
import { hasNats, LEFT_OUT, NatsServer } from '../support/nats.ts';

const quiet = (): void => undefined;

/** A NATS server with the configuration of a new fleet, and a way to admit homes to it. */
async function fleetWithKeys(store?: string): Promise<{
  nats: NatsServer;
  keys: string;
  member: (role: 'host' | 'gateway', name: string) => string;
}> {
  const keys = join(temporaryFolder(), 'keys');
  initFleet(keys, { listen: '127.0.0.1:4222', store });
  const config = (): string => readFileSync(join(keys, CONFIG), 'utf8').replace(/^listen:.*$/m, '');
  const nats = await NatsServer.start(config());
  onCleanup(() => nats.remove());
  return {
    nats,
    keys,
    member: (role, name) => {
      const home = temporaryFolder();
      storeAdmission(home, admit(keys, { role, name, key: ownPublicKey(home) }));
      return home;
    },
  };
}

async function connected(nats: NatsServer, home: string): Promise<NatsConnection> {
  const authenticator = authenticatorOf(home);
  if (!authenticator) throw new Error('the home has no admission');
  const connection = await connect({ servers: [nats.url], authenticator, reconnect: false });
  onCleanup(() => connection.close());
  return connection;
}

/** What NATS refuses of these; "pub x" or "sub x". */
async function refusedOf(connection: NatsConnection, acts: readonly string[]): Promise<string[]> {
  const refused: string[] = [];
  const errors: string[] = [];
  const watching = (async () => {
    for await (const status of connection.status())
      if (status.type === 'error') errors.push(status.error.message);
  })();
  for (const act of acts) {
    const [kind = '', subject = ''] = act.split(' ');
    if (kind === 'sub')
      connection.subscribe(subject, { callback: (error) => void (error && refused.push(act)) });
    else connection.publish(subject, 'x');
    await connection.flush().catch(quiet);
  }
  // The statuses come in turns of their own.
  const publishes = acts.filter((act) => act.startsWith('pub'));
  const done = (): boolean =>
    publishes.every((act) => errors.some((error) => error.includes(`"${act.slice(4)}"`)));
  for (let round = 0; round < 100 && !done(); round += 1) await connection.flush().catch(quiet);
  await connection.close();
  await watching;
  for (const act of publishes)
    if (errors.some((error) => error.includes(`"${act.slice(4)}"`))) refused.push(act);
  return refused;
}

describe('keys', () => {
  it('[FL40] are those of NATS: its own library reads them and verifies their signatures', () => {
    for (const kind of ['operator', 'account', 'user'] as const) {
      const { seed, publicKey, sign } = newKey(kind);
      const theirs = nkeys.fromSeed(Buffer.from(seed));
      expect(theirs.getPublicKey()).toBe(publicKey);
      expect(keyFromSeed(seed).publicKey).toBe(publicKey);
      const data = Buffer.from('nonce');
      expect(theirs.verify(data, sign(data))).toBe(true);
      expect(checkPublicKey(kind, publicKey)).toBe(publicKey);
      const flipped = publicKey.slice(0, -1) + (publicKey.endsWith('A') ? 'B' : 'A');
      expect(() => checkPublicKey(kind, flipped)).toThrow('is not a public key');
    }
    expect(() => checkPublicKey('user', newKey('account').publicKey)).toThrow('is not a public');
    for (const wrong of ['', 'SUAB', 'x y', newKey('user').publicKey])
      expect(() => keyFromSeed(wrong)).toThrow('not the seed');
  });

  it('[FL40] an admission is of use only in the home that has its key, and a name has one key', () => {
    const keys = join(temporaryFolder(), 'keys');
    initFleet(keys, { listen: '127.0.0.1:4222' });
    expect(() => initFleet(keys, { listen: '127.0.0.1:4222' })).toThrow('already');
    const [home, other] = [temporaryFolder(), temporaryFolder()];
    const key = ownPublicKey(home);
    const admission = admit(keys, { role: 'host', name: 'h1', key });
    expect(storeAdmission(home, admission)).toBe('h1');
    expect(() => storeAdmission(other, admission)).toThrow('is not for the key of');
    expect(() => storeAdmission(home, 'nonsense')).toThrow('not an admission');
    const again = { role: 'host', name: 'h1', key: ownPublicKey(other) } as const;
    expect(() => admit(keys, again)).toThrow('belongs to another host');
    forget(keys, 'h1');
    expect(() => admit(keys, { ...again, key })).toThrow('has been revoked');
    expect(admit(keys, again)).toContain('.');
    expect(() => forget(keys, 'nobody')).toThrow('No member of the fleet');
  });

  it('[FL31] beyond this machine NATS is used with TLS, an admission and a server without known holes', () => {
    expect(() => checkServers(['nats://10.0.0.1:4222'], true)).toThrow('has no TLS');
    expect(() => checkServers(['tls://nats.example:4222'], false)).toThrow('has no admission');
    expect(() => checkServers(['http://127.0.0.1'], true)).toThrow('is not an address');
    checkServers(['tls://nats.example:4222', 'nats://127.0.0.1:4222'], true);
    const versions = ['2.9.10', '2.12.6', '2.12.7', '2.13.9', '2.14.0', '3.0.0', 'unknown'];
    const address = 'nats.example:4222';
    const refused = versions.filter((version) => refuseOldServer({ version, address }));
    expect(refused).toEqual(['2.9.10', '2.12.6', '2.13.9', 'unknown']);
    expect(refuseOldServer({ version: '2.9.10', address: '127.0.0.1:4222' })).toBeUndefined();
  });
});

describe.skipIf(!hasNats)(`a fleet with keys${LEFT_OUT}`, () => {
  it('[FL41] hosts and gateways that were admitted work together; others are not let in', async () => {
    const { nats, member } = await fleetWithKeys();
    const servers = [nats.url];
    const { name } = await joined({
      name: 'h1',
      host: await inProcess(),
      servers,
      authenticator: authenticatorOf(member('host', 'h1')),
    });
    const gateway = await gatewayTo([name], {
      name: 'g1',
      servers,
      authenticator: authenticatorOf(member('gateway', 'g1')),
    });
    const api = gateway.host;
    const { process } = await api.start(OWNER, {
      command: 'yes | head -c 2000000',
      waitMs: 60_000,
    });
    expect(process).toMatchObject({ host: 'h1', outcome: { kind: 'exit', code: 0 } });
    const { bytes } = await api.range(OWNER, { id: process.id, offset: 0, maxBytes: 2_000_000 });
    expect(bytes.length).toBe(2_000_000);
    expect((await api.list(OWNER, {})).total).toBe(1);
    await expect(connect({ servers, reconnect: false })).rejects.toThrow(/authorization/i);
    const stranger = temporaryFolder();
    const foreign = join(temporaryFolder(), 'keys');
    initFleet(foreign, { listen: '127.0.0.1:4222' });
    storeAdmission(
      stranger,
      admit(foreign, { role: 'host', name: 'h1', key: ownPublicKey(stranger) }),
    );
    await expect(connected(nats, stranger)).rejects.toThrow(/authorization/i);
  });

  it('[FL42] a host speaks for itself only: every other act is refused', async () => {
    const { nats, member } = await fleetWithKeys();
    const acts = [
      'hf.h.h1.op hf.h.h2.op hf.h.h2.off hf.h._all.roll hf.up.h2.beat hf.up.h2.hello hf.up.h2.bye',
      'hf.up.g1.beat _hf.r.g1.h2.control.1 _hf.r.g1.h2.bulk.1 _hf.i.g1.x _hf.i.h2.x _INBOX.x',
      '$JS.API.INFO $JS.API.STREAM.NAMES $KV.x.y $SYS.REQ.SERVER.PING hf x',
    ]
      .join(' ')
      .split(' ')
      .map((subject) => `pub ${subject}`);
    const subs = [
      '> hf.> hf.h.> hf.h.*.op hf.h.h2.op hf.h.h2.* hf.up.> hf.up.h2.beat hf.up.*.*',
      '_hf.> _hf.r.> _hf.r.g1.> _hf.r.g1.h1.> _hf.r.*.h1.> _hf.i.> _hf.i.g1.> _hf.i.h2.>',
      '_INBOX.> $SYS.> $JS.> $KV.>',
    ]
      .join(' ')
      .split(' ')
      .map((subject) => `sub ${subject}`);
    const all = [...acts, ...subs];
    expect(all.length).toBeGreaterThan(38);
    const host = await connected(nats, member('host', 'h1'));
    expect((await refusedOf(host, all)).toSorted()).toEqual(all.toSorted());
    const may = [
      'pub hf.up.h1.beat',
      'pub _hf.r.g1.h1.control.1',
      'sub hf.h.h1.op',
      'sub _hf.i.h1.>',
    ];
    expect(
      await refusedOf(await connected(nats, member('host', 'h1b')), ['pub hf.up.h1.beat']),
    ).toHaveLength(1);
    const again = await connected(nats, member('host', 'h3'));
    const renamed = may.map((act) => act.replaceAll('h1', 'h3'));
    expect(await refusedOf(again, [...renamed, 'pub not.allowed'])).toEqual(['pub not.allowed']);
  });

  it('[FL42] a gateway reads no answers to another and speaks for no host', async () => {
    const { nats, member } = await fleetWithKeys();
    const all = [
      ...'hf.up.g1.beat hf.up.h1.beat _hf.r.g1.h1.control.1 _hf.r.g2.h1.bulk.1 _hf.i.g1.x _INBOX.x $JS.API.INFO $SYS.x'
        .split(' ')
        .map((subject) => `pub ${subject}`),
      ...'> hf.h.> hf.h.h1.op _hf.r.> _hf.r.g1.> _hf.r.*.h1.> _hf.i.g1.> _INBOX.> $SYS.> $KV.>'
        .split(' ')
        .map((subject) => `sub ${subject}`),
    ];
    const gateway = await connected(nats, member('gateway', 'g2'));
    expect((await refusedOf(gateway, all)).toSorted()).toEqual(all.toSorted());
  });

  it('[FL59] a host writes its own part of the ledger only, and a gateway cannot change what a host wrote', async () => {
    const { nats, keys, member } = await fleetWithKeys('./js');
    const servers = [nats.url];
    const homes = [member('host', 'h1'), member('gateway', 'g1'), member('gateway', 'g2')] as const;
    const [one, two, three] = homes.map(authenticatorOf);
    const host = await inProcess();
    const echo = (stream: Duplex): void => void stream.pipe(stream);
    const { joiner } = await joined({
      name: 'h1',
      host,
      servers,
      authenticator: one,
      serve: echo,
    });
    const gateway = await gatewayTo(['h1'], { name: 'g1', servers, authenticator: two });
    const other = await gatewayTo(['h1'], { name: 'g2', servers, authenticator: three });
    const spec = { command: 'true', key: 'k', labels: { workspace: 'w' }, waitMs: 60_000 };
    const { process } = await gateway.host.start(OWNER, spec);
    expect(await other.host.start(OWNER, spec)).toMatchObject({ process: { id: process.id } });
    const { completions } = await other.host.completions(OWNER, { waitMs: 60_000 });
    expect(completions.map(({ id }) => id)).toEqual([process.id]);
    const numbers = completions.map(({ number }) => number);
    expect(await gateway.host.acknowledge(OWNER, { numbers })).toEqual({ acknowledged: 1 });
    const ledger = (names: string): string[] => names.split(' ').map((name) => `pub ${name}`);
    const forHosts = ledger(
      'hf.led.h2 hf.claim.key.a.b hf.kept.place.a.b $JS.API.STREAM.CREATE.HF_LEDGER $JS.API.STREAM.DELETE.HF_LEDGER ' +
        '$JS.API.STREAM.PURGE.HF_LEDGER $JS.API.STREAM.UPDATE.HF_LEDGER $JS.API.STREAM.MSG.GET.HF_LEDGER ' +
        '$JS.API.STREAM.MSG.DELETE.HF_LEDGER $JS.API.DIRECT.GET.HF_LEDGER $JS.API.DIRECT.GET.HF_LEDGER.hf.led.h2 ' +
        '$JS.API.CONSUMER.CREATE.HF_LEDGER.x $JS.API.STREAM.INFO.HF_CLAIMS $JS.API.DIRECT.GET.HF_CLAIMS',
    );
    const forGateways = ledger(
      'hf.led.h1 hf.led.g1 $JS.API.STREAM.DELETE.HF_LEDGER $JS.API.STREAM.PURGE.HF_LEDGER $JS.API.STREAM.UPDATE.HF_LEDGER ' +
        '$JS.API.STREAM.MSG.DELETE.HF_LEDGER $JS.API.STREAM.CREATE.OTHER $JS.API.STREAM.DELETE.HF_CLAIMS ' +
        '$JS.API.STREAM.PURGE.HF_KEPT $JS.API.STREAM.RESTORE.HF_LEDGER $JS.API.STREAM.SNAPSHOT.HF_LEDGER $JS.API.INFO',
    );
    for (const [index, acts] of [forHosts, forGateways].entries()) {
      const refused = await refusedOf(await connected(nats, homes[index] as string), acts);
      expect(refused.toSorted()).toEqual(acts.toSorted());
    }
    const begun = written(
      { name: 'g2', servers, authenticator: three },
      (entry) => entry.t === 'begun' && entry.name === 'left behind',
    );
    const id = await startProcess(gateway.host, { command: 'sleep 600', name: 'left behind' });
    await begun;
    // A host lets JetStream answer in the place of another one, with what it has stored itself.
    const deputy = await connected(nats, member('host', 'h2'));
    const waiting = gateway.host.wait(OWNER, { waits: [{ id, for: [{ kind: 'exit' }] }] });
    const settled = waiting.then(
      () => 'settled',
      () => 'settled',
    );
    const tunnel = gateway.tunnel('h1', { owner: OWNER, tokenId: 't' });
    const echoed = async (text: string): Promise<string> => {
      const answer = once(tunnel, 'data');
      tunnel.write(text);
      return String((await answer)[0]);
    };
    expect(await echoed('before')).toBe('before');
    const forged = Buffer.concat(encodeMessage({ result: { met: [], timedOut: true } }));
    deputy.publish('hf.led.h2', forged);
    const own = '$JS.API.DIRECT.GET.HF_LEDGER.hf.led.h2';
    for (const asked of [own, '$JS.API.STREAM.INFO.HF_LEDGER', 'hf.led.h2'])
      for (let number = 1; number <= 40; number += 1)
        for (const lane of ['control', 'tunnel'])
          deputy.publish(asked, '', { reply: `_hf.r.g1.h1.${lane}.${number}` });
    deputy.publish(own, '', { reply: 'hf.h.h1.op' });
    // JetStream stores in order: when it has answered this one, it has sent the answers before it.
    const answered = new Promise<void>((resolve) => {
      deputy.subscribe('_hf.i.h2.last', { callback: () => resolve() });
    });
    deputy.publish('hf.led.h2', '', { reply: '_hf.i.h2.last' });
    await answered;
    const running = gateway.host.get(OWNER, { id }).then(({ state }) => state);
    expect(await Promise.race([settled, running])).toBe('running');
    expect(await echoed('after')).toBe('after');
    tunnel.destroy();
    forget(keys, 'h1');
    nats.reload(readFileSync(join(keys, CONFIG), 'utf8').replace(/^listen:.*$/m, ''));
    await seen(gateway, 'h1', 'cut');
    await joiner.close();
    const authenticator = forgetter(keys, 'f1');
    const options = { name: 'f1', servers, authenticator, clock: systemClock, report: quiet };
    expect(await forgetHost(options, 'h1')).toBe(1);
    const said = await gateway.host.completions(OWNER, { waitMs: 60_000, after: numbers[0] });
    expect(said.completions.at(-1)).toMatchObject({
      name: 'left behind',
      outcome: { kind: 'lost' },
    });
  });

  it('[FL44] with TLS the certificate of NATS is checked: one of another authority is not trusted', async () => {
    const folder = temporaryFolder();
    const certificate = (name: string): { cert: string; key: string } => {
      const [cert, key] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)];
      const subject = ['-subj', '/CN=nats', '-addext', 'subjectAltName=DNS:localhost'];
      const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1'];
      spawnSync('openssl', ['req', '-x509', ...kind, '-keyout', key, '-out', cert, ...subject]);
      return { cert, key };
    };
    const [own, other] = [certificate('own'), certificate('other')];
    const keys = join(folder, 'keys');
    initFleet(keys, { listen: '127.0.0.1:4222', tls: own });
    const config = readFileSync(join(keys, CONFIG), 'utf8').replace(/^listen:.*$/m, '');
    const nats = await NatsServer.start(config);
    onCleanup(() => nats.remove());
    const home = temporaryFolder();
    storeAdmission(home, admit(keys, { role: 'host', name: 'h1', key: ownPublicKey(home) }));
    const servers = [nats.url.replace('nats://127.0.0.1', 'tls://localhost')];
    const fabricWith = (ca: string, report: (text: string) => void): Fabric => {
      const authenticator = authenticatorOf(home);
      const tls = tlsFor(servers, ca);
      const fabric = new Fabric({
        name: 'h1',
        servers,
        clock: systemClock,
        authenticator,
        tls,
        report,
      });
      onCleanup(() => fabric.close());
      return fabric;
    };
    const problem = await new Promise<string>((resolve) => fabricWith(other.cert, resolve));
    expect(problem).toMatch(/certificate/i);
    const trusted = fabricWith(own.cert, quiet);
    await new Promise<void>((resolve) => trusted.onUp(resolve));
    expect(trusted.connected).toBe(true);
  });

  it('[FL43] a member that is forgotten is cut off when NATS reads its configuration again', async () => {
    const { nats, keys, member } = await fleetWithKeys();
    const servers = [nats.url];
    const home = member('host', 'h1');
    await joined({
      name: 'h1',
      host: await inProcess(),
      servers,
      authenticator: authenticatorOf(home),
    });
    const gateway = await gatewayTo(['h1'], {
      name: 'g1',
      servers,
      authenticator: authenticatorOf(member('gateway', 'g1')),
    });
    forget(keys, 'h1');
    nats.reload(readFileSync(join(keys, CONFIG), 'utf8').replace(/^listen:.*$/m, ''));
    await seen(gateway, 'h1', 'cut');
    await expect(connected(nats, home)).rejects.toThrow(/authorization|revoked/i);
    const reports: string[] = [];
    const said = new Promise<void>((resolve) => {
      const fabric = new Fabric({
        name: 'h1',
        servers,
        clock: systemClock,
        authenticator: authenticatorOf(home),
        report: (text) => {
          reports.push(text);
          resolve();
        },
      });
      onCleanup(() => fabric.close());
    });
    await said;
    expect(reports[0]).toMatch(/authorization/i);
  });
});
