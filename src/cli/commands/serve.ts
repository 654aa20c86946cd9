// `holdfast serve`

import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Caller } from '../caller.ts';
import type { Command } from '../command.ts';
import { shellWord, type Words } from '../words.ts';

export const command: Command = {
  name: 'serve',
  usage: '[--port N] [--host ADDR] [--socket PATH|none]',
  summary: 'Serve HTTP on loopback and on a unix socket, until it is told to end.',
  options: {
    port: { type: 'string', value: 'N', about: 'TCP port; 0 or absent: any free one' },
    host: { type: 'string', value: 'ADDR', about: 'IP address to bind to (default 127.0.0.1)' },
    socket: {
      type: 'string',
      value: 'PATH',
      about: 'unix socket (default server.sock in the home), or "none"',
    },
    directory: {
      type: 'string',
      value: 'DIR',
      about: 'where commands run that name no directory (default ~)',
    },
    'allow-host': {
      type: 'string',
      multiple: true,
      value: 'NAME',
      about: 'a further name, with its port if Host carries one, under which a proxy calls it',
    },
    'completion-webhook': {
      type: 'string',
      value: 'URL',
      about: 'tell this URL of every end until it has it; signed with webhook.key of the home',
    },
    'completion-webhook-insecure': {
      type: 'boolean',
      about: 'let that URL be plain HTTP on another machine',
    },
    'allow-remote': {
      type: 'boolean',
      about: 'bind to an address that others can reach; put TLS in front of it',
    },
    'allow-origin': {
      type: 'string',
      multiple: true,
      value: 'ORIGIN',
      about: 'let pages of this origin ask, as http://127.0.0.1:8080; by default none may',
    },
    'insecure-no-auth': {
      type: 'boolean',
      about: 'ask for no token; loopback only, and every local user may run anything',
    },
  },
  notes: [
    'Every request needs "Authorization: Bearer TOKEN" with the token of the file "token" in the home,',
    'except through the socket in the home, which only you can reach.',
    'TERM and Ctrl-C end the server alone: the keeper and its processes go on.',
  ],
  async run({ words, caller, out }) {
    words.exactly(0, 0);
    const openToAll = words.flag('insecure-no-auth');
    const [port, address, socket, directory] = [
      words.count('port'),
      words.text('host'),
      words.text('socket'),
      words.text('directory'),
    ];
    const hook = words.text('completion-webhook');
    const webhook = hook && { url: hook, insecure: words.flag('completion-webhook-insecure') };
    const { startServer } = await import('../../server/server.ts');
    const server = await startServer({
      home: caller.home,
      env: caller.env,
      ...(port !== undefined && { port }),
      ...(address !== undefined && { address }),
      ...(socket !== undefined && { socket }),
      ...(directory !== undefined && { defaultDirectory: directory }),
      ...(webhook && { webhook }),
      allowHosts: words.texts('allow-host'),
      openToAll,
      allowRemote: words.flag('allow-remote'),
      origins: words.texts('allow-origin'),
      report: (message) => void out.note(message),
      again: again(words, caller),
    });
    const { url, tokenFile, keeperPid, home, version } = server;
    const ready = {
      url,
      socket: server.socket ?? null,
      tokenFile,
      pid: process.pid,
      keeperPid,
      home,
      version,
    };
    if (out.json) await out.line(JSON.stringify(ready));
    else for (const line of greeting({ ...ready, openToAll })) await out.line(line);
    const signal = await told();
    await server.close();
    return { result: { ...ready, signal }, said: true };
  },
};

/** The options that a restart gives again; home and port it knows, and paths may have been meant from here. */
function again(words: Words, caller: Caller): string[] {
  const path = (text: string): string => resolve(caller.cwd, text);
  const socket = words.text('socket');
  const texts = {
    host: words.text('host'),
    socket: socket === undefined || socket === 'none' ? socket : path(socket),
    directory: words.text('directory') && path(words.text('directory') ?? ''),
    'completion-webhook': words.text('completion-webhook'),
  };
  const flags = ['completion-webhook-insecure', 'allow-remote', 'insecure-no-auth'];
  return [
    ...Object.entries(texts).flatMap(([name, text]) =>
      text === undefined ? [] : [`--${name}`, text],
    ),
    ...words.texts('allow-host').flatMap((name) => ['--allow-host', name]),
    ...flags.filter((name) => words.flag(name)).map((name) => `--${name}`),
  ];
}

interface Ready {
  readonly url: string;
  readonly socket: string | null;
  readonly tokenFile: string;
  readonly keeperPid: number;
  readonly home: string;
  readonly openToAll: boolean;
}

function greeting({ url, socket, tokenFile, keeperPid, home, openToAll }: Ready): string[] {
  const elsewhere = home === join(homedir(), '.holdfast') ? '' : ` --home ${shellWord(home)}`;
  const cli = `node ${shellWord(process.argv[1] ?? 'holdfast')}`;
  // As a header from stdin: what stands in the arguments of curl can be read by every local user.
  const auth = `sed 's/^/Authorization: Bearer /' ${shellWord(tokenFile)} | `;
  const curl = `${openToAll ? '' : auth}curl -s${openToAll ? '' : ' -H @-'} ${shellWord(url)}`;
  return [
    `Holdfast serves ${url}${socket === null ? '' : ` and ${socket}`} (keeper ${keeperPid}).`,
    ...(openToAll
      ? ['WARNING: no token is asked for. Every local user can run commands as you.']
      : []),
    '',
    'Try it from another terminal:',
    `  ${curl}/v1/processes -H 'Content-Type: application/json' -d '{"command":"echo hello"}'`,
    `  ${cli} run${elsewhere} 'echo hello'`,
    '',
    `Ctrl-C ends the server; its processes go on. This ends everything:  ${cli} stop${elsewhere}`,
  ];
}

function told(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const)
      process.once(signal, () => resolve(signal));
    process.on('SIGHUP', () => undefined);
    // Without a handler SIGUSR1 opens Node's debugger to every local user.
    process.on('SIGUSR1', () => undefined);
  });
}
