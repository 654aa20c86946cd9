// The emulator's worker thread, as the main thread sees it. Jobs run one after the other, owners take turns, each job
// has a budget of processor time. A job above its budget costs the thread: the next job gets a new one, and each screen
// restores itself there when it is next used.

import { builtFile } from '../../base/workers/built-file.ts';
import { WORKER_PRIORITY, workerProgram } from '../../base/workers/worker-program.ts';
import type { Clock } from '../../base/clock.ts';
import { TimedQueue } from '../../base/workers/timed-queue.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { EmulatorAnswer, EmulatorJob, EmulatorPart } from './emulator-worker.ts';

const PROGRAM = workerProgram(builtFile(import.meta.url, './emulator-worker.js'));

/** The thread was lost, with all terminals in it. */
export class EmulatorLost extends Error {
  /** The event that the job was processing, if this job caused the loss. */
  readonly culprit: number | undefined;

  constructor(culprit: number | undefined, reason: string) {
    super(`The screen's worker had to be replaced: ${reason}.`);
    this.culprit = culprit;
  }
}

export interface EmulatorsOptions {
  readonly clock: Clock;
  /** For one job: output that should take three milliseconds, or reading a whole scrollback. */
  readonly budgetMs?: number;
  readonly idleMs?: number;
}

/** For the heap of the thread. Cells are in typed arrays outside the heap. */
const MAX_HEAP_MB = 512;

export class EmulatorThread {
  private readonly queue: TimedQueue<EmulatorJob, EmulatorAnswer>;
  private readonly open = new Set<number>();
  private closed = false;
  private lastScreen = 0;
  private generations = 0;

  constructor({ clock, budgetMs = 250, idleMs = 30_000 }: EmulatorsOptions) {
    this.queue = new TimedQueue({
      clock,
      name: 'holdfast-screen',
      program: PROGRAM,
      maxHeapMb: MAX_HEAP_MB,
      priority: WORKER_PRIORITY,
      budgetMs,
      idleMs,
      state: {
        isUsed: () => this.open.size > 0,
        dropped: () => {
          this.generations += 1;
          this.open.clear();
        },
        // Those that waited are retried.
        lost: (reason, at = 0) => new EmulatorLost(at > 0 ? at : undefined, reason),
      },
    });
  }

  /** Changes when the thread, with every terminal in it, was lost or ended. */
  get generation(): number {
    return this.generations;
  }

  nextScreen(): number {
    this.lastScreen += 1;
    return this.lastScreen;
  }

  async ask(job: EmulatorJob, owner: string): Promise<EmulatorAnswer> {
    const transfer = job.kind === 'feed' ? [...new Set(job.parts.flatMap(bufferOf))] : [];
    try {
      const answer = await this.queue.ask(job, { owner, transfer });
      this.note(job, answer);
      return answer;
    } catch (error) {
      throw this.closed ? new HoldfastError('host_closed', 'The screens are closed.') : error;
    }
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.queue.close();
  }

  private note({ kind, screen }: EmulatorJob, { unreadable }: EmulatorAnswer): void {
    if (kind === 'open' || (kind === 'restore' && unreadable !== true)) this.open.add(screen);
    if (kind === 'close') this.open.delete(screen);
  }
}

function bufferOf(part: EmulatorPart): ArrayBuffer[] {
  return 'bytes' in part ? [part.bytes.buffer] : [];
}
