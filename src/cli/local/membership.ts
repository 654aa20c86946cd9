// Notices when a home has, or gets, a membership in a fleet, without loading what the fleet needs.

import { existsSync, watch } from 'node:fs';
import { join } from 'node:path';
import { MEMBERSHIP as FILE } from '../../system/private-folder.ts';

/** Calls `join` once, when the file is there. Returns a function that undoes it. */
export function onMembership(
  home: string,
  join_: () => Promise<() => Promise<void>>,
): () => Promise<void> {
  let leave: Promise<() => Promise<void>> | undefined;
  const look = (): void => {
    if (leave || !existsSync(join(home, FILE))) return;
    leave = join_();
    watcher?.close();
  };
  const watcher = watched(home, look);
  look();
  return async () => {
    watcher?.close();
    await (
      await leave
    )?.();
  };
}

/** Where no more files can be watched, a server joins when it is started. */
function watched(home: string, look: () => void): ReturnType<typeof watch> | undefined {
  try {
    const watcher = watch(home, (_event, name) => {
      if (name === FILE) look();
    });
    watcher.on('error', () => watcher.close());
    return watcher.unref();
  } catch {
    return undefined;
  }
}
