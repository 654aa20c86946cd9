// A terminal's screen for the length of one command: rebuilt from the journal, followed while something is waited for.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../base/clock.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { FileCheckpoints } from '../../screen/checkpoints.ts';
import { Screens } from '../../screen/screens.ts';
import { checkpointFolder } from '../../server/terminals/terminal-folder.ts';
import { openSession, type TerminalSession } from '../../server/terminals/terminal-session.ts';
import type { TtyCall } from './command.ts';

export async function withSession<T>(
  call: TtyCall,
  process: ProcessInfo,
  use: (session: TerminalSession) => Promise<T>,
): Promise<T> {
  const screens = new Screens({ clock: systemClock });
  // A server that runs answers the programs' questions itself.
  const answers = !existsSync(join(call.caller.home, 'server.sock'));
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
