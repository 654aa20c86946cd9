// `holdfast restart`

import { VERSION } from '../../base/version.ts';
import type { Answer, Command } from '../arguments/command.ts';
import { olderBuild } from '../local/keeper-age.ts';
import { restartServer, type Restarted } from '../local/restart-server.ts';
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
      const restarted = await restartServer(caller, (isSupervised) => {
        if (isSupervised && given !== undefined) throw words.wrong(SUPERVISED);
        return given;
      });
      return answer(restarted);
    };
  },
};

/** The keeper is not started again: its processes would end. */
function answer({ ready, keeper }: Restarted): Answer {
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
