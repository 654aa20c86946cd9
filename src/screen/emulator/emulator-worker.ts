// The emulator's worker: holds the terminals of all screens, so that a slow one blocks nobody. The main thread ends it
// if a job takes too long; it reports which event it is processing.

import { parentPort, workerData } from 'node:worker_threads';
import { serveJobs } from '../../base/workers/timed-thread.ts';
import { Emulator } from './emulator.ts';
import type { Look } from './emulator.ts';
import type { Skipped } from '../view/snapshot.ts';
import { buffersOf } from '../view/view.ts';

export type EmulatorPart =
  | { readonly seq: number; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly seq: number; readonly cols: number; readonly rows: number };

export type EmulatorJob = { readonly screen: number } & (
  | {
      readonly kind: 'open';
      readonly cols: number;
      readonly rows: number;
      readonly scrollback: number;
    }
  | { readonly kind: 'restore'; readonly checkpoint: Uint8Array }
  | { readonly kind: 'feed'; readonly parts: readonly EmulatorPart[] }
  | { readonly kind: 'look'; readonly scrollback: number; readonly behind?: boolean }
  | { readonly kind: 'checkpoint'; readonly skipped: readonly Skipped[] }
  | { readonly kind: 'close' }
);

export interface EmulatorAnswer {
  /** Answers to terminal queries of the program. */
  readonly answers?: readonly string[];
  /** Events on which the emulator failed. */
  readonly failed?: readonly number[];
  readonly tookMs?: number;
  readonly look?: Look;
  readonly checkpoint?: Uint8Array | undefined;
  readonly skipped?: readonly Skipped[];
  /** The checkpoint could not be read. */
  readonly unreadable?: true;
}

const emulators = new Map<number, Emulator>();

// xterm.js reports its own slowness with this, to the stderr of the whole program.
console.warn = () => undefined;

serveJobs(parentPort, workerData, answer, ({ look }) =>
  look === undefined ? [] : buffersOf(look),
);

function answer(job: EmulatorJob, progress: (seq: number) => void): EmulatorAnswer {
  if (job.kind === 'open') {
    emulators.set(job.screen, new Emulator(job.cols, job.rows, job.scrollback));
    return {};
  }
  if (job.kind === 'restore') return restore(job.screen, job.checkpoint);
  const emulator = emulators.get(job.screen);
  if (emulator === undefined) throw new Error(`There is no screen ${job.screen}.`);
  if (job.kind === 'look') return { look: emulator.look(job.scrollback, job.behind) };
  if (job.kind === 'checkpoint') return { checkpoint: emulator.checkpoint(job.skipped) };
  if (job.kind === 'close') {
    emulator.dispose();
    emulators.delete(job.screen);
    return {};
  }
  const failed: number[] = [];
  const begun = performance.now();
  for (const part of job.parts) {
    progress(part.seq);
    if (!('bytes' in part)) emulator.resize(part.cols, part.rows);
    else if (!emulator.feed(part.bytes)) failed.push(part.seq);
  }
  return { answers: emulator.takeAnswers(), failed, tookMs: performance.now() - begun };
}

function restore(screen: number, checkpoint: Uint8Array): EmulatorAnswer {
  try {
    const { emulator, skipped } = Emulator.restore(checkpoint);
    emulators.set(screen, emulator);
    return { skipped };
  } catch {
    // Damaged, or from another version: the caller replays without it.
    return { unreadable: true };
  }
}
