// Forwards stdin of this command to the process, up to its end.

import { errnoOf } from '../base/disk.ts';
import type { KeeperLink } from '../keeper/link.ts';
import type { ProcessInfo } from '../protocol/process.ts';
import { isError } from './caller.ts';

export async function forwardInput(host: KeeperLink, { id, owner }: ProcessInfo): Promise<void> {
  try {
    for await (const chunk of process.stdin)
      await host.write(owner, { id, data: chunk as Buffer<ArrayBuffer> });
    await host.write(owner, { id, eof: true });
  } catch (error) {
    // The process reads no more, or this command is ending: no failure.
    const over = errnoOf(error) === 'ERR_STREAM_PREMATURE_CLOSE';
    if (!over && !isError(error, 'stdin_closed', 'not_running', 'keeper_lost')) throw error;
  }
}
