// Guesses that the kernel's out-of-memory killer ended a child. A parent sees only SIGKILL, but the kernel counts its
// victims, for our memory cgroup or for the whole machine. The count is read at every exit, so that a victim counts for
// the next exit only. If the victim could be an unrelated process, the answer is no.

import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { systemClock, type Clock } from '../base/clock.ts';
import { systemDisk } from '../base/disk.ts';

/** The machine's count is used only if it was read this recently; otherwise the victim may be unrelated. */
const MACHINE_WINDOW_MS = 1000;

/** A counter of victims. */
export interface VictimCount {
  /** Counts only processes of our own memory cgroup and of cgroups below it. */
  readonly own: boolean;
  /** Undefined if it cannot be read now. */
  read(): number | undefined;
  close?(): void;
}

export class OomCounter {
  private count: VictimCount | undefined;
  private readonly clock: Clock;
  private seen: number | undefined;
  private seenUs: number;

  constructor(count = systemCount(), clock: Clock = systemClock) {
    this.count = count;
    this.clock = clock;
    this.seen = count?.read();
    this.seenUs = clock.nowUs();
  }

  close(): void {
    this.count?.close?.();
    this.count = undefined;
  }

  /** Adds `maybeOom` to the status of a child that the OOM killer may have ended. Call it at every exit of a child. */
  explain<Status extends { readonly signal?: string }>(
    status: Status,
  ): Status & { maybeOom?: true } {
    const struck = this.struck();
    return struck && status.signal === 'SIGKILL' ? { ...status, maybeOom: true } : status;
  }

  /** Whether there certainly was a victim since the previous call. */
  struck(): boolean {
    if (!this.count) return false;
    const [before, beforeUs] = [this.seen, this.seenUs];
    const now = this.count.read();
    this.seen = now;
    this.seenUs = this.clock.nowUs();
    if (now === undefined || before === undefined || now <= before) return false;
    return this.count.own || this.seenUs - beforeUs <= MACHINE_WINDOW_MS * 1000;
  }
}

function systemCount(): VictimCount | undefined {
  for (const path of ownFiles()) {
    const own = countIn(path, true);
    if (own) return own;
  }
  return countIn('/proc/vmstat', false);
}

/** cgroup version 2, then version 1. */
function ownFiles(): string[] {
  let text: string;
  try {
    text = readFileSync('/proc/self/cgroup', 'utf8');
  } catch {
    return [];
  }
  const unified = /^0::(\/.*)$/m.exec(text)?.[1];
  const memory = /^\d+:(?:[^:\n]*,)?memory(?:,[^:\n]*)?:(\/.*)$/m.exec(text)?.[1];
  return [
    ...(unified === undefined ? [] : [`/sys/fs/cgroup${unified}/memory.events`]),
    ...(memory === undefined ? [] : [`/sys/fs/cgroup/memory${memory}/memory.oom_control`]),
  ].filter((path) => existsSync(path));
}

function countIn(path: string, own: boolean): VictimCount | undefined {
  try {
    const fd = openSync(path, 'r');
    const buffer = Buffer.alloc(own ? 512 : 32_768);
    let last = Buffer.alloc(0);
    let count = 0;
    const read = (): number | undefined => {
      let length: number;
      try {
        length = systemDisk.readSync(fd, buffer, 0);
      } catch {
        // No memory, or the cgroup was removed.
        return undefined;
      }
      // Usually nothing has changed: do not parse the same bytes again.
      if (length === last.length && last.equals(buffer.subarray(0, length))) return count;
      last = Buffer.from(buffer.subarray(0, length));
      count = Number(/^oom_kill (\d+)$/m.exec(last.toString('latin1'))?.[1] ?? 0);
      return count;
    };
    if (read() !== undefined) return { own, read, close: () => closeSync(fd) };
    closeSync(fd);
  } catch {
    // It does not exist or cannot be opened: then no exit is reported as out of memory.
  }
  return undefined;
}
