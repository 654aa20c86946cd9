// A terminal's screen for the duration of one command: rebuilt from the journal, and followed during a wait.

import { systemClock } from '../../base/clock.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { FileCheckpoints } from '../../screen/emulator/checkpoints.ts';
import { Screens } from '../../screen/view/screens.ts';
import { checkpointFolder } from '../../journal/terminal-folder.ts';
import { openSession, type TerminalSession } from '../../terminals/terminal-session.ts';
import type { TtyCall } from './command.ts';
import { serverAnswers } from './server-answers.ts';

export async function withSession<T>(
  call: TtyCall,
  process: ProcessInfo,
  use: (session: TerminalSession) => Promise<T>,
): Promise<T> {
  const screens = new Screens({ clock: systemClock });
  // A running server answers the programs' queries.
  const answers = !(await serverAnswers(call.caller.home, process));
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
