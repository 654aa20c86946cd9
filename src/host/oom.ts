// Whether the kernel's out-of-memory killer was at work. The kernel tells a parent only "SIGKILL"; its counter of
// victims, in whatever memory group, is the one hint it leaves.

import { readFileSync } from 'node:fs';

export class OomCounter {
  private seen = victims();

  /** True when there was a victim since the last time this was asked. */
  struck(): boolean {
    const now = victims();
    const more = now > this.seen;
    this.seen = now;
    return more;
  }
}

function victims(): number {
  try {
    return Number(/^oom_kill (\d+)$/m.exec(readFileSync('/proc/vmstat', 'utf8'))?.[1] ?? 0);
  } catch {
    // No such file on this platform: then it is never said.
    return 0;
  }
}
