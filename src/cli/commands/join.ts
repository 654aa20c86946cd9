// `holdfast join`

import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import type { Command } from '../arguments/command.ts';
import { summaries } from '../summaries.ts';
import { command as serve } from './serve.ts';

const own = {
  name: {
    type: 'string',
    value: 'NAME',
    about: 'name of this host in the fleet (default: its host name)',
  },
  label: {
    type: 'string',
    multiple: true,
    value: 'NAME=VALUE',
    about: 'a label that starts can ask for with "host.NAME"',
  },
  admission: {
    type: 'string',
    value: 'FILE',
    about: 'what "holdfast fleet admit" printed for this host',
  },
  ca: {
    type: 'string',
    value: 'FILE',
    about: "authority that signed NATS's certificate (default: the machine's own)",
  },
  admit: {
    type: 'string',
    multiple: true,
    value: 'OWNER',
    about: 'let gateways act for these owners only; "*" stands for any characters',
  },
} as const;

export const command: Command = {
  name: 'join',
  usage: 'ADDRESS[,...] [--name NAME] [--label NAME=VALUE]... [options of serve]',
  summary: summaries.join,
  examples: ['holdfast join nats://127.0.0.1:4222 --name h1 --label pool=gpu'],
  options: { ...own, ...serve.options },
  settings: ['serve', 'keeper', 'log'],
  notes: [
    'Nothing listens for the fleet: the server dials out to NATS.',
    'The membership stays in fleet.json of the state directory: "holdfast serve" joins again.',
    'A server that runs already joins without a restart.',
  ],
  read({ words, caller, out }) {
    const [address = ''] = words.expect('ADDRESS');
    const labels = Object.fromEntries(
      words.texts('label').map((text) => {
        const at = text.indexOf('=');
        if (at < 1) throw words.wrong(`--label "${text}" is not NAME=VALUE`);
        return [text.slice(0, at), text.slice(at + 1)];
      }),
    );
    const owners = words.texts('admit');
    const given = words.text('name');
    const [admission, ca] = [words.text('admission'), words.text('ca')];
    const serveWords = words.with(words.again([...Object.keys(own), 'json', 'home'], {}), serve);
    const act = serve.read({ words: serveWords, caller, out });
    return async () => {
      await caller.refuseInside('join a fleet');
      const { newMembership, writeMembership } = await import('../../fleet/member/membership.ts');
      const { nameFrom } = await import('../../fleet/wire/subjects.ts');
      const { splitServers } = await import('../../fleet/wire/addresses.ts');
      const { openHome } = await import('../../keeper/home.ts');
      const { localServer } = await import('../local/server.ts');
      const home = openHome(caller.home).folder;
      const { storeAdmission } = await import('../../fleet/identity/credentials.ts');
      const admitted =
        admission === undefined
          ? undefined
          : storeAdmission(home, readFileSync(resolve(caller.cwd, admission), 'utf8'));
      const member = newMembership(home, {
        name: admitted ?? given ?? nameFrom(hostname()),
        servers: splitServers(address),
        labels,
        ...(owners.length > 0 && { owners: [...owners] }),
        ...(ca !== undefined && { ca: resolve(caller.cwd, ca) }),
      });
      writeMembership(home, member);
      const running = await localServer(home);
      if (!running) return act();
      const { name, servers } = member;
      return {
        result: { name, servers, pid: running.pid },
        lines: [`The server (pid ${running.pid}) joins ${servers.join(', ')} as "${name}".`],
      };
    };
  },
};
