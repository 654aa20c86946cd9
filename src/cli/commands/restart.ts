// `holdfast restart`

import type { Command } from '../command.ts';
import { endServer, startServer } from '../local-server.ts';

export const command: Command = {
  name: 'restart',
  usage: '[--port N]',
  summary: 'End the server and start it again. Its options stay; processes go on.',
  options: { port: { type: 'string', value: 'N', about: 'TCP port (default: the one it had)' } },
  async run({ words, caller }) {
    words.exactly(0, 0);
    const old = await endServer(caller.home);
    const port = words.count('port') ?? (old ? Number(new URL(old.url).port) : 0);
    const ready = await startServer(caller.home, { port, again: old?.again ?? [] }, caller.env);
    return { result: ready, lines: [`The server (pid ${ready.pid}) serves ${ready.url}.`] };
  },
};
