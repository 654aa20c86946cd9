// Tells when a sandbox is ready: its first program closes the write end of a pipe (native/begin.c). All other holders of that
// end, which are bubblewrap's own processes, close it earlier.

import { closeSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Fence } from '../../protocol/confinement/confinement.ts';
import { refuseReserved } from '../../system/descriptor-reserve.ts';
import type { Posix } from '../../system/posix.ts';

/** A sandbox takes milliseconds. One of folders on a dead file system may take for ever. */
const LONGEST_MS = 2000;

export class Readiness {
  readonly fence: Pick<Fence, 'ready'>;
  private readonly ends: readonly [number, number];

  constructor(posix: Posix) {
    this.ends = posix.pipe();
    try {
      refuseReserved(posix, this.ends);
    } catch (error) {
      this.giveUp();
      throw error;
    }
    this.fence = { ready: this.ends[1] };
  }

  /** After the start: resolves when the sandbox is ready, has failed, or takes too long. */
  reached(): Promise<void> {
    const [fd, write] = this.ends;
    closeSync(write);
    return new Promise((resolve) => {
      const end = new Socket({ fd, readable: true, writable: false });
      const timer = setTimeout(() => end.destroy(), LONGEST_MS);
      end.on('error', () => undefined);
      end.once('close', () => {
        clearTimeout(timer);
        resolve();
      });
      end.resume();
    });
  }

  giveUp(): void {
    for (const fd of this.ends) closeSync(fd);
  }
}
