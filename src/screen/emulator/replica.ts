// One terminal in the emulator's worker, at one event of a journal. It can be advanced, looked at and saved as a
// checkpoint. If the worker is lost, the replica restores itself from a checkpoint and the journal; an event that
// killed the worker is skipped from then on.

import type { ProcessEvent } from '../../protocol/event.ts';
import type { TerminalSize } from '../../protocol/process.ts';
import type { CheckpointStore } from './checkpoints.ts';
import type { Look } from './emulator.ts';
import type { EmulatorAnswer, EmulatorJob, EmulatorPart } from './emulator-worker.ts';
import { EmulatorLost } from './emulator-thread.ts';
import type { EmulatorThread } from './emulator-thread.ts';
import type { Skipped } from '../view/snapshot.ts';

/**
 * Where a screen reads events that it was not fed: at the start, for looking back, and after its worker was replaced.
 */
export interface EventSource {
  /** Pages of events after `after`, in order, up to the present end or to `upTo`, inclusive. */
  read(after: number, upTo?: number): AsyncIterable<readonly ProcessEvent[]>;
}

export interface ReplicaOptions {
  readonly emulators: EmulatorThread;
  /** Owners take turns in the worker. */
  readonly owner: string;
  readonly source: EventSource;
  readonly checkpoints: CheckpointStore;
  readonly size: TerminalSize;
  readonly scrollback: number;
}

/**
 * Bytes per job: few at first, more while jobs are fast, fewer when they are slow, so that other screens never wait
 * long.
 */
const JOB_BYTES = { first: 2 * 1024, least: 256, most: 256 * 1024 } as const;
const JOB_MS = 3;
/** Replaying this much takes about 150 ms, saving a checkpoint about 25. */
const CHECKPOINT_BYTES = 8 * 1024 * 1024;
/** A worker that is lost this often without a suspicious event does not work at all. */
const MAX_LOSSES = 5;

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
  /** Events that are never fed to the worker again. */
  private skippedEvents: Skipped[] = [];
  /** Events on which the emulator failed, with their size. */
  private readonly failed = new Map<number, number>();
  private uncheckedBytes = 0;
  private jobBytes: number = JOB_BYTES.first;
  /** The event that the worker was processing when it was last lost. */
  private suspect: number | undefined;

  constructor(options: ReplicaOptions) {
    this.options = options;
    this.screen = options.emulators.nextScreen();
  }

  /** The last event that was processed. */
  get seq(): number {
    return this.at;
  }

  get skipped(): readonly Skipped[] {
    const failed = Array.from(this.failed, ([seq, bytes]) => ({ seq, bytes }));
    return mergeSkipped(this.skippedEvents, failed).toSorted((a, b) => a.seq - b.seq);
  }

  /** Whether the terminal is in the worker, where it takes memory. */
  get loaded(): boolean {
    return this.generation === this.options.emulators.generation;
  }

  /** Processes events after `seq`, in order. Returns answers to terminal queries. */
  async process(events: readonly ProcessEvent[]): Promise<string[]> {
    const answers: string[] = [];
    for (const slice of slices(events.filter(({ seq }) => seq > this.at))) {
      answers.push(...(await this.processSlice(slice)));
    }
    return answers;
  }

  /** Reads the source up to `upTo`, or to its end. */
  async advance(upTo?: number): Promise<void> {
    if (this.at === 0 && !this.loaded) await this.load(upTo ?? Number.MAX_SAFE_INTEGER);
    if (upTo !== undefined && this.at >= upTo) return;
    for await (const page of this.options.source.read(this.at, upTo)) await this.process(page);
  }

  async look(scrollback: number, behind: boolean): Promise<Look> {
    const { look } = await this.askAndRestore({ kind: 'look', scrollback, behind });
    if (look === undefined) throw new Error('The screen was not looked at.');
    return look;
  }

  /** Saves a checkpoint, unless the parser is in the middle of a sequence. */
  async saveCheckpoint(): Promise<void> {
    if (this.at === 0 || this.uncheckedBytes === 0) return;
    const { checkpoint } = await this.askAndRestore({ kind: 'checkpoint', skipped: this.skipped });
    if (checkpoint === undefined) return;
    this.uncheckedBytes = 0;
    await this.options.checkpoints.save(this.at, checkpoint);
  }

  /** Removes the terminal from the worker; the next call restores it. */
  async unload(): Promise<void> {
    if (!this.loaded) return;
    this.generation = undefined;
    await this.ask({ kind: 'close' }).catch(ignoreLoss);
  }

  private async processSlice(slice: readonly ProcessEvent[]): Promise<readonly string[]> {
    const last = slice.at(-1)?.seq ?? this.at;
    const bytes = slice.reduce((total, event) => total + bytesOf(event), 0);
    let losses = 0;
    for (;;) {
      const drawn = slice.filter((event) => this.draws(event));
      try {
        if (drawn.length > 0) await this.load(this.at);
        const answers = await this.feed(drawn);
        this.at = last;
        this.uncheckedBytes += bytes;
        if (this.uncheckedBytes >= CHECKPOINT_BYTES) await this.saveCheckpoint();
        return answers;
      } catch (error) {
        losses = this.blame(error, slice) ? 0 : losses + 1;
        if (losses > MAX_LOSSES) throw error;
      }
    }
  }

  private async feed(events: readonly ProcessEvent[]): Promise<string[]> {
    const all: string[] = [];
    // Before the suspect come fast events, after which the jobs would be large again.
    const most = events.some(({ seq }) => seq === this.suspect) ? JOB_BYTES.first : JOB_BYTES.most;
    this.jobBytes = Math.min(this.jobBytes, most);
    for (const parts of jobs(events, () => Math.round(this.jobBytes))) {
      const { answers = [], failed = [], tookMs = 0 } = await this.ask({ kind: 'feed', parts });
      for (const seq of failed) this.failed.set(seq, bytesOfEvent(events, seq));
      all.push(...answers);
      const factor = Math.min(2, JOB_MS / Math.max(tookMs, 0.1));
      this.jobBytes = Math.min(Math.max(this.jobBytes * factor, JOB_BYTES.least), most);
    }
    return all;
  }

  /**
   * True if an event is to blame; it is never fed again. At first it is only suspected and fed again in small pieces,
   * because a large job may be slow without a single bad event.
   */
  private blame(error: unknown, events: readonly ProcessEvent[]): boolean {
    if (!(error instanceof EmulatorLost)) throw error;
    const event = events.find(({ seq }) => seq === error.culprit);
    if (event === undefined) return false;
    const isKnown = this.suspect === event.seq || this.jobBytes <= JOB_BYTES.first;
    this.suspect = event.seq;
    this.jobBytes = JOB_BYTES.first;
    if (isKnown)
      this.skippedEvents = [...this.skippedEvents, { seq: event.seq, bytes: bytesOf(event) }];
    return isKnown;
  }

  private draws({ kind, seq }: ProcessEvent): boolean {
    if (this.skippedEvents.some((skipped) => skipped.seq === seq)) return false;
    return kind === 'output' || kind === 'resize';
  }

  private async askAndRestore(job: JobOf<'look' | 'checkpoint'>): Promise<EmulatorAnswer> {
    for (let losses = 0; ; losses += 1) {
      try {
        await this.load(this.at);
        return await this.ask(job);
      } catch (error) {
        if (!(error instanceof EmulatorLost) || losses >= MAX_LOSSES) throw error;
      }
    }
  }

  /** Brings the terminal into the worker at `upTo`, or at the newest checkpoint before it. */
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
      this.skippedEvents = mergeSkipped(restored?.skipped ?? [], this.skippedEvents);
    }
    // If the worker was replaced meanwhile, the terminal is gone: the next job notices and restores it again.
    this.generation = generation === emulators.generation ? generation : undefined;
    if (this.at >= goal) return;
    for await (const page of source.read(this.at, goal)) await this.process(page);
    this.at = Math.max(this.at, goal);
  }

  private ask(job: JobOf<EmulatorJob['kind']>): Promise<EmulatorAnswer> {
    return this.options.emulators.ask({ ...job, screen: this.screen }, this.options.owner);
  }
}

function mergeSkipped(first: readonly Skipped[], second: readonly Skipped[]): Skipped[] {
  return [...new Map([...first, ...second].map((skipped) => [skipped.seq, skipped])).values()];
}

function bytesOf(event: ProcessEvent): number {
  return event.kind === 'output' ? event.data.length : 0;
}

/** A part whose bytes are still in the page that was read. */
type Piece =
  | Exclude<EmulatorPart, { readonly bytes: unknown }>
  | { readonly seq: number; readonly bytes: Uint8Array };

/** The parts of one job after the other. `maxBytes` is called for each job. */
function* jobs(events: readonly ProcessEvent[], maxBytes: () => number): Generator<EmulatorPart[]> {
  let parts: Piece[] = [];
  let remaining = maxBytes();
  for (const event of events) {
    const { seq } = event;
    if (event.kind === 'resize') parts.push({ seq, cols: event.body.cols, rows: event.body.rows });
    if (event.kind !== 'output') continue;
    for (let from = 0; from < event.data.length;) {
      const bytes = event.data.subarray(from, from + remaining);
      parts.push({ seq, bytes });
      from += bytes.length;
      remaining -= bytes.length;
      if (remaining > 0) continue;
      yield toTransferable(parts);
      parts = [];
      remaining = maxBytes();
    }
  }
  if (parts.length > 0) yield toTransferable(parts);
}

/** Copies all bytes into one buffer, which is transferred to the thread without a copy. */
function toTransferable(parts: readonly Piece[]): EmulatorPart[] {
  const size = parts.reduce((total, part) => total + ('bytes' in part ? part.bytes.length : 0), 0);
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

function bytesOfEvent(events: readonly ProcessEvent[], seq: number): number {
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

function ignoreLoss(error: unknown): void {
  if (!(error instanceof EmulatorLost)) throw error;
}
