// A terminal's screen for the length of one command: rebuilt from the journal, followed while something is waited for.

import { systemClock } from '../../base/clock.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { FileCheckpoints } from '../../screen/emulator/checkpoints.ts';
import { Screens } from '../../screen/view/screens.ts';
import { checkpointFolder } from '../../journal/terminal-folder.ts';
import { openSession, type TerminalSession } from '../../terminals/terminal-session.ts';
import type { TtyCall } from './command.ts';
import { serverAttends } from './server-attention.ts';

export async function withSession<T>(
  call: TtyCall,
  process: ProcessInfo,
  use: (session: TerminalSession) => Promise<T>,
): Promise<T> {
  const screens = new Screens({ clock: systemClock });
  // A server that runs answers the programs' questions itself.
  const answers = !(await serverAttends(call.caller.home, process));
  const host = await call.host();
  const session = await openSession(process.owner, process.id, {
    host,
    screens: () => Promise.resolve(screens),
    answers,
    checkpoints: () => new FileCheckpoints(checkpointFolder(call.caller.home, process)),
  });
  try {
    return await use(session);
  } finally {
    await session.close();
    await screens.close();
  }
}
