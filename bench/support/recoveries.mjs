// What a killed keeper can leave: for each, how long the host that takes it up works in one piece at most.

import { execFileSync } from 'node:child_process';
import { openKeeper, OWNER, runThrough } from './keeper.mjs';
import { inFlight } from './statistics.mjs';

const PROGRAM = new URL('../programs/recover.mjs', import.meta.url).pathname;
const FLOOD = 'head -c 60000000 /dev/urandom | base64 -w 70; echo all-told; sleep 600';

export const recoveries = {
  'recovery of 1,000 lost processes': {
    processes: 1000,
    leave: (link) => link.start(OWNER, { argv: ['sleep', '600'] }),
  },
  'recovery of 2,000 journals': {
    processes: 2000,
    leave: (link) => runThrough(link, { argv: ['true'] }),
  },
  'recovery of 8 lost floods': {
    processes: 8,
    leave: async (link) => {
      const { process } = await link.start(OWNER, { command: FLOOD });
      const told = { kind: 'text', text: 'all-told' };
      await link.wait(OWNER, { waits: [{ id: process.id, for: [told] }] });
    },
  },
};

/** Answers with what the program says that took them up. */
export async function recover({ processes, leave }) {
  const first = await openKeeper();
  await inFlight(processes, 8, () => leave(first.link));
  process.kill(first.pid, 'SIGKILL');
  await first.link.ended;
  const said = JSON.parse(execFileSync(process.execPath, [PROGRAM, first.home]));
  const next = await openKeeper({ home: first.home });
  await next.stop();
  if (said.processes !== processes)
    throw new Error(`${said.processes} were taken up instead of ${processes}`);
  return said;
}
