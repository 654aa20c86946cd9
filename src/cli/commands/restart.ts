// `holdfast restart`

import type { Command } from '../arguments/command.ts';
import { MOST_PORT } from '../arguments/words.ts';
import { endServer, lastServer, startServer } from '../local/server.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'restart',
  usage: '[--port N]',
  summary: summaries.restart,
  options: {
    port: { type: 'string', value: 'N', about: 'TCP port (default: the same as before)' },
  },
  read({ words, caller }) {
    words.expect();
    const given = words.count('port', MOST_PORT);
    return async () => {
      await caller.refuseInside('restart the server');
      // A server cannot start without an answer from the keeper: the one that runs is not ended for nothing.
      await (await caller.running())?.health(caller.sees, {});
      const old = (await endServer(caller.home)) ?? (await lastServer(caller.home));
      const port = given ?? (old ? Number(new URL(old.url).port) : 0);
      const ready = await startServer(caller.home, { port, again: old?.again ?? [] }, caller.env);
      return {
        result: ready,
        lines: [`The server (pid ${ready.pid}) serves ${ready.url} in the background.`],
      };
    };
  },
};
