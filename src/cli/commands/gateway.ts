// `holdfast gateway`

import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { systemClock } from '../../base/clock.ts';
import type { GatewayOptions } from '../../fleet/gateway/gateway.ts';
import { gatewayHome } from '../caller.ts';
import type { Command } from '../arguments/command.ts';
import { summaries } from '../summaries.ts';
import { settingOptions } from '../settings/setting.ts';
import { optionsOf, runServer } from './serve.ts';

export const command: Command = {
  name: 'gateway',
  usage: 'ADDRESS[,...] [--name NAME] [--port N] [--host ADDR]',
  summary: summaries.gateway,
  examples: ['holdfast gateway nats://127.0.0.1:4222 --port 7070'],
  options: settingOptions('gateway'),
  settings: ['gateway', 'log'],
  notes: [
    'It serves the API of "holdfast serve" for all hosts of the fleet. Its tokens are in the folder "gateway" of the',
    'state directory: "holdfast token admin --home HOME/gateway" prints one.',
    'Any number of gateways can run; each can end at any time.',
    'Where S3 is another service: s3://BUCKET/PREFIX?endpoint=URL&region=NAME.',
    'An archive in S3 needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY here, and nothing at the hosts.',
  ],
  read({ words, caller, out }) {
    const [address = ''] = words.expect('ADDRESS');
    const given = words.text('name');
    const [admission, ca] = [words.text('admission'), words.text('ca')];
    const archive = words.text('archive');
    const home = gatewayHome(caller.home);
    const { again: _again, ...server } = optionsOf(words, caller, (text) => void out.note(text));
    return async () => {
      const { openGateway } = await import('../../fleet/gateway/gateway.ts');
      const { gatewayLink } = await import('../../fleet/gateway/gateway-link.ts');
      const { checkServers, refuseOldServer, splitServers, tlsFor } =
        await import('../../fleet/wire/addresses.ts');
      const { checkName, nameFrom } = await import('../../fleet/wire/subjects.ts');
      const { authenticatorOf, storeAdmission } =
        await import('../../fleet/identity/credentials.ts');
      const { OwnerPolicies } = await import('../../host/limits/owner-policies.ts');
      const { randomId } = await import('../../base/ids.ts');
      const { openHome } = await import('../../keeper/home.ts');
      openHome(home);
      const admitted =
        admission === undefined
          ? undefined
          : storeAdmission(home, readFileSync(resolve(caller.cwd, admission), 'utf8'));
      const servers = splitServers(address);
      const authenticator = authenticatorOf(home);
      checkServers(servers, authenticator !== undefined);
      const made = `${nameFrom(hostname()).slice(0, 40)}-${randomId().slice(0, 8)}`;
      const name = checkName('gateway', admitted ?? given ?? made);
      const policies = new OwnerPolicies(home, () => systemClock.wallMs());
      const gateway = openGateway({
        servers,
        name,
        authenticator,
        report: (text) => void out.note(text),
        tls: tlsFor(servers, ca === undefined ? undefined : resolve(caller.cwd, ca)),
        refuse: refuseOldServer,
        ceilingOf: (owner) => policies.of(owner),
        archive: await archiveAt(archive, home, caller.env),
      });
      const link = gatewayLink(gateway);
      const { openGatewaySocket } = await import('../../fleet/gateway/gateway-socket.ts');
      const closeSocket = await openGatewaySocket(home, gateway.host);
      const serving = runServer(
        {
          ...server,
          home,
          // The shell of a host, not of this machine.
          env: { ...caller.env, SHELL: '/bin/sh' },
          gateway: { ...gateway, link },
        },
        { caller, out },
      );
      try {
        return await serving;
      } finally {
        await closeSocket?.();
      }
    };
  },
};

async function archiveAt(
  address: string | undefined,
  home: string,
  env: NodeJS.ProcessEnv,
): Promise<GatewayOptions['archive']> {
  if (address === undefined) return undefined;
  const { openStore } = await import('../../fleet/archive/archive-store.ts');
  const {
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_SESSION_TOKEN: sessionToken,
  } = env;
  const credentials =
    accessKeyId && secretAccessKey
      ? { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) }
      : undefined;
  return { store: await openStore(address, credentials), folder: join(home, 'archive-cache') };
}
