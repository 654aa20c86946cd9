// `holdfast exec-server`

import type { Command } from '../arguments/command.ts';
import type { Words } from '../arguments/words.ts';
import type { WsAuthOptions } from '../../server/codex/ws-auth.ts';
import { settingOptions } from '../settings/setting.ts';
import { settings } from '../settings/table.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'exec-server',
  usage: '[--listen ws://IP:PORT|stdio] [--ws-auth KIND ...]',
  summary: summaries['exec-server'],
  examples: ['holdfast exec-server', 'holdfast exec-server --listen ws://127.0.0.1:8090'],
  options: {
    ...settingOptions('exec-server'),
    'exit-on-stdin-close': { type: 'boolean', about: 'exit when stdin is closed' },
  },
  settings: ['exec-server', 'keeper'],
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
      bubblewrap: words.text('bubblewrap'),
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
    kind: words.choice('ws-auth', settings['exec-server']['ws-auth'].choices) ?? 'own',
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
