// Probes paths on file systems that may hang. A helper process touches them, because the caller of such a path may block
// for ever. Each owner has a few helpers at a time, so that its dead paths delay no other owner.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import type { Clock } from '../../base/clock.ts';
import { FairTurns } from '../../base/fair-turns.ts';
import { Cancellation } from '../../protocol/cancellation.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Owner } from '../../protocol/host-api.ts';
import type { LaunchPlan } from '../../protocol/process.ts';
import type { Child } from '../child/child.ts';
import { signalGroup } from '../descendants/descendants.ts';

/** A directory that may be entered, one that may not, an executable file, something else, nothing. */
const KINDS = { d: 'directory', D: 'closed', x: 'program', f: 'other', '-': 'nothing' } as const;
export type PathKind = (typeof KINDS)[keyof typeof KINDS];
export type PathAnswers = ReadonlyMap<string, PathKind>;

/** Prints one letter per path, in order: the first path without a letter does not answer. */
const SCRIPT = `for path do
  if [ -d "$path" ]; then if [ -x "$path" ]; then echo d; else echo D; fi
  elif [ -f "$path" ] && [ -x "$path" ]; then echo x
  elif [ -e "$path" ]; then echo f
  else echo -; fi
done`;

/** Concurrent helpers of one owner, including those that hang. */
const MAX_PER_OWNER = 4;
const MAX_HELPERS = 64;

export interface PathProbesOptions {
  readonly clock: Clock;
  /** How long a path may take to answer. */
  readonly answerMs: number;
  readonly start: (plan: LaunchPlan) => Promise<Child>;
}

export class PathProbes {
  private readonly options: PathProbesOptions;
  private readonly turns = new FairTurns({ atOnce: MAX_HELPERS, perOwner: MAX_PER_OWNER });
  private readonly pending = new Map<string, Promise<PathAnswers>>();

  constructor(options: PathProbesOptions) {
    this.options = options;
  }

  /** Starts that ask the same question at the same time share the answer. Rejects with `path_unresponsive`. */
  ask(owner: Owner, paths: readonly string[]): Promise<PathAnswers> {
    const key = [owner, ...paths].join('\0');
    const known = this.pending.get(key);
    if (known) return known;
    const answers = this.probe(owner, paths).finally(() => this.pending.delete(key));
    this.pending.set(key, answers);
    return answers;
  }

  private async probe(owner: Owner, paths: readonly string[]): Promise<PathAnswers> {
    const { clock, answerMs } = this.options;
    const late = new Cancellation();
    const cancel = clock.after(answerMs, () => late.abort());
    let text = '';
    const problem = (): HoldfastError =>
      unresponsive(paths[text.length / 2] ?? paths[0] ?? '', answerMs);
    const tooLate = new Promise<never>((_, reject) => {
      late.addEventListener('abort', () => reject(problem()));
    });
    const printed = (bytes: Buffer): void => void (text += bytes.toString('latin1'));
    try {
      await Promise.race([tooLate, this.runHelper(owner, paths, { printed, late })]);
      const answers = answersOf(paths, text);
      if (answers) return answers;
      throw problem();
    } finally {
      cancel();
    }
  }

  /** Resolves when the helper has ended. A helper that hangs keeps its turn until then. */
  private async runHelper(
    owner: Owner,
    paths: readonly string[],
    { printed, late }: { readonly printed: (bytes: Buffer) => void; readonly late: CancelSignal },
  ): Promise<void> {
    const turn = this.turns.pass(owner, late);
    if (turn) await turn;
    try {
      const child = await this.options.start(planOf(paths));
      const ended = new Promise<void>((resolve) => {
        child.listen({
          output: (_, bytes) => printed(bytes),
          exited: () => undefined,
          ended: resolve,
        });
      });
      // A helper that hangs in the kernel ends when its file system answers.
      const kill = (): void => void signalGroup(child.pid, 'SIGKILL');
      if (late.aborted) kill();
      else late.addEventListener('abort', kill);
      await ended;
    } finally {
      this.turns.done(owner);
    }
  }
}

function answersOf(paths: readonly string[], text: string): PathAnswers | undefined {
  const letters = text.split('\n').slice(0, -1);
  if (letters.length !== paths.length) return undefined;
  return new Map(
    paths.map((path, index) => [path, KINDS[letters[index] as keyof typeof KINDS] ?? 'nothing']),
  );
}

function planOf(paths: readonly string[]): LaunchPlan {
  return {
    file: '/bin/sh',
    argv: ['sh', '-c', SCRIPT, 'sh', ...paths],
    env: [],
    cwd: '/',
    streams: 'merged',
    stdin: 'none',
    size: { cols: 80, rows: 24 },
  };
}

function unresponsive(path: string, ms: number): HoldfastError {
  const message = `The path ${path} does not answer: its file system did not within ${ms} ms.`;
  return new HoldfastError('path_unresponsive', message, { path });
}
