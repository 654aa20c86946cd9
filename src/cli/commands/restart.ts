// `holdfast restart`

import { VERSION } from '../../base/version.ts';
import type { StartedServer } from '../../client/server-process.ts';
import type { Health } from '../../protocol/host-api.ts';
import type { Answer, Command } from '../arguments/command.ts';
import { olderBuild } from '../local/keeper-age.ts';
import { endServer, lastServer, startServer } from '../local/server.ts';
import { MOST_PORT } from '../settings/table.ts';
import { summaries } from '../summaries.ts';

const SUPERVISED =
  '--port cannot change here, because "holdfast up" has the options of this server';

export const command: Command = {
  name: 'restart',
  usage: '[--port N]',
  summary: summaries.restart,
  examples: ['holdfast restart'],
  options: {
    port: { type: 'string', value: 'N', about: 'TCP port (default: the same as before)' },
  },
  read({ words, caller }) {
    words.expect();
    const given = words.count('port', MOST_PORT);
    return async () => {
      await caller.refuseInside('restart the server');
      // A server cannot start without an answer from the keeper: the one that runs is not ended for nothing.
      const host = await caller.running();
      const health = await host?.health(caller.sees, {});
      if (host?.keeper.supervises && host.serve) {
        if (given !== undefined) throw words.wrong(SUPERVISED);
        await endServer(caller.home);
        return answer((await host.serve()) as StartedServer, health);
      }
      const old = (await endServer(caller.home)) ?? (await lastServer(caller.home));
      const before = old && ['--last-port', new URL(old.url).port];
      const typed = given ?? (old?.portIsTyped ? new URL(old.url).port : undefined);
      const port = typed === undefined ? (before ?? []) : ['--port', String(typed)];
      const ready = await startServer(caller.home, [...(old?.again ?? []), ...port], caller.env);
      return answer(ready, health);
    };
  },
};

/** The keeper is not started again: its processes would end. */
function answer(ready: StartedServer, keeper: Health | undefined): Answer {
  const { pid, url } = ready;
  const older = keeper && olderBuild(keeper.uptimeMs);
  return {
    result: { ...ready, ...(keeper && { keeper: { version: keeper.version, pid: keeper.pid } }) },
    lines: [
      `The server (pid ${pid}, version ${VERSION}) serves ${url} in the background.`,
      ...(keeper && older !== undefined
        ? [`The keeper (pid ${keeper.pid}, version ${keeper.version}) keeps running: ${older}.`]
        : []),
    ],
  };
}
