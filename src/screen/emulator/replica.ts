// One terminal in the emulator's worker, standing behind one event of a journal. It can be brought forward, looked at and
// kept as a checkpoint; when the worker is lost it comes back by itself, from a checkpoint and the journal. An event the
// worker was lost over is left out from then on.

import type { ProcessEvent } from '../../protocol/event.ts';
import type { TerminalSize } from '../../protocol/process.ts';
import type { CheckpointStore } from './checkpoints.ts';
import type { Look } from './emulator.ts';
import type { EmulatorAnswer, EmulatorJob, EmulatorPart } from './emulator-worker.ts';
import { EmulatorLost } from './emulator-thread.ts';
import type { EmulatorThread } from './emulator-thread.ts';
import type { Skipped } from '../view/snapshot.ts';

/** Where a screen reads what it was not fed: to start, to look back, and after its worker had to be replaced. */
export interface EventSource {
  /** Pages of events behind `after`, in order, up to the end of what is there now (or to `upTo`, included). */
  read(after: number, upTo?: number): AsyncIterable<readonly ProcessEvent[]>;
}

export interface ReplicaOptions {
  readonly emulators: EmulatorThread;
  /** Owners have the worker in turn. */
  readonly owner: string;
  readonly source: EventSource;
  readonly checkpoints: CheckpointStore;
  readonly size: TerminalSize;
  readonly scrollback: number;
}

/**
 * One job of the worker: few bytes at first, more while they are taken in quickly, fewer when they are not, so that other
 * screens never wait long for their turn.
 */
const JOB_BYTES = { first: 2 * 1024, least: 256, most: 256 * 1024 } as const;
const JOB_MS = 3;
/** Replaying this much takes about 150 ms, taking a checkpoint about 25. */
const CHECKPOINT_BYTES = 8 * 1024 * 1024;
/** A worker that is lost so often without an event to blame will not work at all. */
const MOST_LOSSES = 5;

type JobOf<Kind> = EmulatorJob extends infer Job
  ? Job extends { readonly kind: Kind }
    ? Omit<Job, 'screen'>
    : never
  : never;

export class Replica {
  private readonly options: ReplicaOptions;
  private readonly screen: number;
  private at = 0;
  private generation: number | undefined;
  /** Never to be given to the worker again. */
  private left: Skipped[] = [];
  /** Taken in as far as they went, with their size. */
  private readonly failed = new Map<number, number>();
  private uncheckedBytes = 0;
  private jobBytes: number = JOB_BYTES.first;
  /** The event that a worker was at when it was last lost. */
  private suspect: number | undefined;

  constructor(options: ReplicaOptions) {
    this.options = options;
    this.screen = options.emulators.nextScreen();
  }

  /** The last event it has taken in. */
  get seq(): number {
    return this.at;
  }

  get skipped(): readonly Skipped[] {
    const failed = Array.from(this.failed, ([seq, bytes]) => ({ seq, bytes }));
    return merged(this.left, failed).toSorted((a, b) => a.seq - b.seq);
  }

  /** It is in the worker, and takes memory there. */
  get loaded(): boolean {
    return this.generation === this.options.emulators.generation;
  }

  /** Events behind `seq`, in order. Answers what the terminal answered to the program. */
  async take(events: readonly ProcessEvent[]): Promise<string[]> {
    const answers: string[] = [];
    for (const slice of slices(events.filter(({ seq }) => seq > this.at))) {
      answers.push(...(await this.takeSlice(slice)));
    }
    return answers;
  }

  /** Reads the source up to `upTo`, or to its end. */
  async advance(upTo?: number): Promise<void> {
    if (this.at === 0 && !this.loaded) await this.load(upTo ?? Number.MAX_SAFE_INTEGER);
    if (upTo !== undefined && this.at >= upTo) return;
    for await (const page of this.options.source.read(this.at, upTo)) await this.take(page);
  }

  async look(scrollback: number, behind: boolean): Promise<Look> {
    const { look } = await this.steadily({ kind: 'look', scrollback, behind });
    if (look === undefined) throw new Error('The screen was not looked at.');
    return look;
  }

  /** Keeps a checkpoint of where it stands, unless that is inside of a sequence. */
  async keep(): Promise<void> {
    if (this.at === 0 || this.uncheckedBytes === 0) return;
    const { checkpoint } = await this.steadily({ kind: 'checkpoint', skipped: this.skipped });
    if (checkpoint === undefined) return;
    this.uncheckedBytes = 0;
    await this.options.checkpoints.save(this.at, checkpoint);
  }

  /** Leaves the worker; whatever is asked next brings it back. */
  async leave(): Promise<void> {
    if (!this.loaded) return;
    this.generation = undefined;
    await this.ask({ kind: 'close' }).catch(unlessLost);
  }

  private async takeSlice(slice: readonly ProcessEvent[]): Promise<readonly string[]> {
    const last = slice.at(-1)?.seq ?? this.at;
    const bytes = slice.reduce((sum, event) => sum + bytesOf(event), 0);
    let losses = 0;
    for (;;) {
      const drawn = slice.filter((event) => this.draws(event));
      try {
        if (drawn.length > 0) await this.load(this.at);
        const answers = await this.feed(drawn);
        this.at = last;
        this.uncheckedBytes += bytes;
        if (this.uncheckedBytes >= CHECKPOINT_BYTES) await this.keep();
        return answers;
      } catch (error) {
        losses = this.blame(error, slice) ? 0 : losses + 1;
        if (losses > MOST_LOSSES) throw error;
      }
    }
  }

  private async feed(events: readonly ProcessEvent[]): Promise<string[]> {
    const all: string[] = [];
    // Coming back to a suspect, what stands before it was taken in quickly and would have made the steps large again.
    const most = events.some(({ seq }) => seq === this.suspect) ? JOB_BYTES.first : JOB_BYTES.most;
    this.jobBytes = Math.min(this.jobBytes, most);
    for (const parts of jobs(events, () => Math.round(this.jobBytes))) {
      const { answers = [], failed = [], tookMs = 0 } = await this.ask({ kind: 'feed', parts });
      for (const seq of failed) this.failed.set(seq, sizeIn(events, seq));
      all.push(...answers);
      const factor = Math.min(2, JOB_MS / Math.max(tookMs, 0.1));
      this.jobBytes = Math.min(Math.max(this.jobBytes * factor, JOB_BYTES.least), most);
    }
    return all;
  }

  /**
   * True when an event was at fault; it will not be given to the worker again. At first it is only suspected, and given
   * once more in small pieces: a large job may take long without any of it being to blame.
   */
  private blame(error: unknown, events: readonly ProcessEvent[]): boolean {
    if (!(error instanceof EmulatorLost)) throw error;
    const event = events.find(({ seq }) => seq === error.culprit);
    if (event === undefined) return false;
    const isKnown = this.suspect === event.seq || this.jobBytes <= JOB_BYTES.first;
    this.suspect = event.seq;
    this.jobBytes = JOB_BYTES.first;
    if (isKnown) this.left = [...this.left, { seq: event.seq, bytes: bytesOf(event) }];
    return isKnown;
  }

  private draws({ kind, seq }: ProcessEvent): boolean {
    if (this.left.some((skipped) => skipped.seq === seq)) return false;
    return kind === 'output' || kind === 'resize';
  }

  private async steadily(job: JobOf<'look' | 'checkpoint'>): Promise<EmulatorAnswer> {
    for (let losses = 0; ; losses += 1) {
      try {
        await this.load(this.at);
        return await this.ask(job);
      } catch (error) {
        if (!(error instanceof EmulatorLost) || losses >= MOST_LOSSES) throw error;
      }
    }
  }

  /** Brings it into the worker as it was behind `upTo`, or as far on the way there as the newest checkpoint goes. */
  private async load(upTo: number): Promise<void> {
    if (this.loaded) return;
    const { emulators, checkpoints, size, scrollback, source } = this.options;
    const goal = this.at;
    const checkpoint = await checkpoints.nearest(upTo);
    const { generation } = emulators;
    const restored =
      checkpoint === undefined
        ? undefined
        : await this.ask({ kind: 'restore', checkpoint: checkpoint.bytes });
    if (checkpoint === undefined || restored?.unreadable === true) {
      await this.ask({ kind: 'open', ...size, scrollback });
      this.at = 0;
    } else {
      this.at = checkpoint.seq;
      this.left = merged(restored?.skipped ?? [], this.left);
    }
    // A worker that was replaced in between holds nothing of it: the next job finds that out and begins again.
    this.generation = generation === emulators.generation ? generation : undefined;
    if (this.at >= goal) return;
    for await (const page of source.read(this.at, goal)) await this.take(page);
    this.at = Math.max(this.at, goal);
  }

  private ask(job: JobOf<EmulatorJob['kind']>): Promise<EmulatorAnswer> {
    return this.options.emulators.ask({ ...job, screen: this.screen }, this.options.owner);
  }
}

function merged(first: readonly Skipped[], second: readonly Skipped[]): Skipped[] {
  return [...new Map([...first, ...second].map((skipped) => [skipped.seq, skipped])).values()];
}

function bytesOf(event: ProcessEvent): number {
  return event.kind === 'output' ? event.data.length : 0;
}

/** A part whose bytes still lie in the page they were read with. */
type Piece =
  | Exclude<EmulatorPart, { readonly bytes: unknown }>
  | { readonly seq: number; readonly bytes: Uint8Array };

/** What one job takes in, one after the other, asked anew for each how many bytes it may have. */
function* jobs(events: readonly ProcessEvent[], maxBytes: () => number): Generator<EmulatorPart[]> {
  let parts: Piece[] = [];
  let room = maxBytes();
  for (const event of events) {
    const { seq } = event;
    if (event.kind === 'resize') parts.push({ seq, cols: event.body.cols, rows: event.body.rows });
    if (event.kind !== 'output') continue;
    for (let from = 0; from < event.data.length;) {
      const bytes = event.data.subarray(from, from + room);
      parts.push({ seq, bytes });
      from += bytes.length;
      room -= bytes.length;
      if (room > 0) continue;
      yield handedOver(parts);
      parts = [];
      room = maxBytes();
    }
  }
  if (parts.length > 0) yield handedOver(parts);
}

/** With all their bytes in one buffer of its own, which the thread gets without a copy. */
function handedOver(parts: readonly Piece[]): EmulatorPart[] {
  const size = parts.reduce((sum, part) => sum + ('bytes' in part ? part.bytes.length : 0), 0);
  const all = new Uint8Array(size);
  let at = 0;
  return parts.map((part) => {
    if (!('bytes' in part)) return part;
    const { seq, bytes } = part;
    all.set(bytes, at);
    at += bytes.length;
    return { seq, bytes: all.subarray(at - bytes.length, at) };
  });
}

function sizeIn(events: readonly ProcessEvent[], seq: number): number {
  const event = events.find((each) => each.seq === seq);
  return event === undefined ? 0 : bytesOf(event);
}

function* slices(events: readonly ProcessEvent[]): Generator<ProcessEvent[]> {
  let slice: ProcessEvent[] = [];
  let bytes = 0;
  for (const event of events) {
    if (slice.length > 0 && bytes + bytesOf(event) > JOB_BYTES.most) {
      yield slice;
      slice = [];
      bytes = 0;
    }
    slice.push(event);
    bytes += bytesOf(event);
  }
  if (slice.length > 0) yield slice;
}

function unlessLost(error: unknown): void {
  if (!(error instanceof EmulatorLost)) throw error;
}
