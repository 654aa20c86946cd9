// `holdfast exec-server`

import type { Command } from '../command.ts';
import type { Words } from '../words.ts';
import type { WsAuthOptions } from '../../server/codex/ws-auth.ts';
import { HoldfastError } from '../../protocol/errors.ts';

const AUTH_KINDS = ['none', 'capability-token', 'signed-bearer-token'] as const;

export const command: Command = {
  name: 'exec-server',
  usage: '[--listen ws://IP:PORT|stdio] [--ws-auth KIND ...]',
  summary: 'Serve codex\'s exec-server protocol, in place of "codex exec-server".',
  options: {
    listen: {
      type: 'string',
      value: 'URL',
      about: 'ws://IP:PORT or stdio (default ws://127.0.0.1:0)',
    },
    'ws-auth': {
      type: 'string',
      value: 'KIND',
      about: 'capability-token, signed-bearer-token or none; without it a token of its own',
    },
    'ws-token-file': { type: 'string', value: 'FILE', about: 'holds the capability token' },
    'ws-token-sha256': { type: 'string', value: 'HEX', about: 'sum of the capability token' },
    'ws-shared-secret-file': { type: 'string', value: 'FILE', about: 'secret of signed tokens' },
    'ws-issuer': { type: 'string', value: 'NAME', about: 'who must have issued a signed token' },
    'ws-audience': { type: 'string', value: 'NAME', about: 'whom a signed token must be for' },
    'ws-max-clock-skew-seconds': { type: 'string', value: 'N', about: 'default 30' },
    'concurrent-requests': {
      type: 'string',
      value: 'N',
      about: '1: strictly one after the other; otherwise requests never wait for each other',
    },
    'exit-on-stdin-close': { type: 'boolean', about: 'end when stdin ends' },
    'detach-time': {
      type: 'string',
      value: '30m',
      about: 'how long a session outlives its connection (default 30m)',
    },
    'allow-remote': {
      type: 'boolean',
      about: 'bind to an address that others can reach; put TLS in front of it',
    },
  },
  notes: [
    'Prints its address as its only line, with its own token in it unless --ws-auth says otherwise:',
    '  CODEX_EXEC_SERVER_URL=that codex exec "..."',
    'Sessions live in the keeper: a server that is killed and started again goes on with them.',
  ],
  async run({ words, caller, out }) {
    words.exactly(0, 0);
    const listen = words.text('listen') ?? 'ws://127.0.0.1:0';
    const { listenExecServer, speakExecServer } = await import('../../server/codex/exec-server.ts');
    const options = {
      home: caller.home,
      env: caller.env,
      cwd: process.cwd(),
      report: (message: string) => void out.note(message),
      detachMs: words.durationMs('detach-time'),
      serial: words.count('concurrent-requests') === 1,
    };
    if (listen === 'stdio') {
      await speakExecServer(options, process.stdin, process.stdout);
      return { result: undefined, said: true };
    }
    const server = await listenExecServer({
      ...options,
      listen,
      auth: authOf(words),
      allowRemote: words.flag('allow-remote'),
    });
    await out.line(server.url);
    await told(words.flag('exit-on-stdin-close'));
    await server.close();
    return { result: undefined, said: true };
  },
};

function authOf(words: Words): WsAuthOptions {
  const kind = words.text('ws-auth') ?? 'own';
  const known = [...AUTH_KINDS, 'own' as const].find((each) => each === kind);
  if (!known)
    throw new HoldfastError(
      'invalid_input',
      `exec-server: --ws-auth is ${AUTH_KINDS.join(', ')}, not "${kind}".`,
    );
  return {
    kind: known,
    tokenFile: words.text('ws-token-file'),
    tokenSha256: words.text('ws-token-sha256'),
    sharedSecretFile: words.text('ws-shared-secret-file'),
    issuer: words.text('ws-issuer'),
    audience: words.text('ws-audience'),
    maxClockSkewSeconds: words.count('ws-max-clock-skew-seconds'),
  };
}

function told(stdinToo: boolean): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve());
    process.on('SIGHUP', () => undefined);
    // Without a handler SIGUSR1 opens Node's debugger to every local user.
    process.on('SIGUSR1', () => undefined);
    if (stdinToo) process.stdin.once('end', resolve).resume();
  });
}
