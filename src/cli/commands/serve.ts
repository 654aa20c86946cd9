// `holdfast serve`

import type { Command } from '../command.ts';

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
    const { startServer } = await import('../../server/server.ts');
    const server = await startServer({
      home: caller.home,
      env: caller.env,
      ...(port !== undefined && { port }),
      ...(address !== undefined && { address }),
      ...(socket !== undefined && { socket }),
      ...(directory !== undefined && { defaultDirectory: directory }),
      openToAll,
      allowRemote: words.flag('allow-remote'),
      origins: words.texts('allow-origin'),
      report: (message) => void out.note(message),
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

interface Ready {
  readonly url: string;
  readonly socket: string | null;
  readonly tokenFile: string;
  readonly keeperPid: number;
  readonly openToAll: boolean;
}

function greeting({ url, socket, tokenFile, keeperPid, openToAll }: Ready): string[] {
  const main = process.argv[1] ?? 'holdfast';
  const auth = openToAll ? '' : ` -H "Authorization: Bearer $(cat ${tokenFile})"`;
  return [
    `Holdfast serves ${url}${socket === null ? '' : ` and ${socket}`} (keeper ${keeperPid}).`,
    ...(openToAll
      ? ['WARNING: no token is asked for. Every local user can run commands as you.']
      : []),
    '',
    'Try it from another terminal:',
    `  curl -s${auth} ${url}/v1/processes -H 'Content-Type: application/json' -d '{"command":"echo hello"}'`,
    `  node ${main} run 'echo hello'`,
    '',
    'Ctrl-C ends the server. Its processes go on; "holdfast shutdown" ends them.',
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
