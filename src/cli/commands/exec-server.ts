// `holdfast exec-server`

import type { Command } from '../arguments/command.ts';
import type { Words } from '../arguments/words.ts';
import type { WsAuthOptions } from '../../server/codex/ws-auth.ts';
import { summaries } from '../summaries.ts';

const AUTH_KINDS = ['none', 'capability-token', 'signed-bearer-token'] as const;

export const command: Command = {
  name: 'exec-server',
  usage: '[--listen ws://IP:PORT|stdio] [--ws-auth KIND ...]',
  summary: summaries['exec-server'],
  options: {
    listen: {
      type: 'string',
      value: 'URL',
      about: 'ws://IP:PORT or stdio (default ws://127.0.0.1:0)',
    },
    'ws-auth': {
      type: 'string',
      value: 'KIND',
      completes: AUTH_KINDS,
      about: 'capability-token, signed-bearer-token or none (default: a token in its address)',
    },
    'ws-token-file': { type: 'string', value: 'FILE', about: 'file with the capability token' },
    'ws-token-sha256': { type: 'string', value: 'HEX', about: 'SHA-256 of the capability token' },
    'ws-shared-secret-file': {
      type: 'string',
      value: 'FILE',
      about: 'file with the secret of signed tokens',
    },
    'ws-issuer': { type: 'string', value: 'NAME', about: 'required issuer of signed tokens' },
    'ws-audience': { type: 'string', value: 'NAME', about: 'required audience of signed tokens' },
    'ws-max-clock-skew-seconds': { type: 'string', value: 'N', about: 'default 30' },
    'concurrent-requests': {
      type: 'string',
      value: 'N',
      about: '1: handle requests one after the other (default: concurrently)',
    },
    'exit-on-stdin-close': { type: 'boolean', about: 'exit when stdin is closed' },
    'detach-time': {
      type: 'string',
      value: '30m',
      about: 'how long a session outlives its connection (default 30m)',
    },
    'allow-remote': {
      type: 'boolean',
      about: 'allow an address that other machines can reach; put TLS in front of it',
    },
  },
  notes: [
    'Prints its address on one line, with a token in it unless --ws-auth is given:',
    '  CODEX_EXEC_SERVER_URL=ADDRESS codex exec "..."',
    'Sessions live in the keeper: they survive a server that is killed and started again.',
  ],
  read({ words, caller, out }) {
    words.expect();
    const listen = words.text('listen') ?? 'ws://127.0.0.1:0';
    const options = {
      home: caller.home,
      env: caller.env,
      keeperArgs: caller.keeperArgs,
      cwd: caller.cwd,
      report: (message: string) => void out.note(message),
      detachMs: words.durationMs('detach-time'),
      serial: words.count('concurrent-requests') === 1,
    };
    const served = {
      ...options,
      listen,
      auth: authOf(words),
      allowRemote: words.flag('allow-remote'),
    };
    const endsWithStdin = words.flag('exit-on-stdin-close');
    return async () => {
      const { listenExecServer, serveExecServerStdio } =
        await import('../../server/codex/exec-server.ts');
      if (listen === 'stdio') {
        await serveExecServerStdio(options, process.stdin, process.stdout);
        return { result: undefined, said: true };
      }
      const { goAhead } = await import('../../system/priority.ts');
      const server = await listenExecServer(served);
      goAhead();
      process.title = 'hf-server';
      await out.line(server.url);
      await waitForEnd(endsWithStdin);
      await server.close();
      return { result: undefined, said: true };
    };
  },
};

function authOf(words: Words): WsAuthOptions {
  return {
    kind: words.choice('ws-auth', AUTH_KINDS) ?? 'own',
    tokenFile: words.text('ws-token-file'),
    tokenSha256: words.text('ws-token-sha256'),
    sharedSecretFile: words.text('ws-shared-secret-file'),
    issuer: words.text('ws-issuer'),
    audience: words.text('ws-audience'),
    maxClockSkewSeconds: words.count('ws-max-clock-skew-seconds'),
  };
}

function waitForEnd(stdinToo: boolean): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve());
    process.on('SIGHUP', () => undefined);
    // Without a handler SIGUSR1 opens Node's debugger to every local user.
    process.on('SIGUSR1', () => undefined);
    if (stdinToo) process.stdin.once('end', resolve).resume();
  });
}
