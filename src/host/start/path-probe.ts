// Questions about paths that may not answer: a helper process looks at them, since whoever looks may stand still for as
// long as the file system likes. Each owner has a few helpers at a time, so that its dead paths hold up nobody else.

import type { Clock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Owner } from '../../protocol/host-api.ts';
import type { LaunchPlan } from '../../protocol/process.ts';
import type { Child, ChildListener } from '../child/child.ts';
import { signalGroup } from '../descendants/descendants.ts';

/** A directory that may be entered, one that may not, a file that may be executed, something else, nothing. */
const KINDS = { d: 'directory', D: 'closed', x: 'program', f: 'other', '-': 'nothing' } as const;
export type PathKind = (typeof KINDS)[keyof typeof KINDS];
export type PathAnswers = ReadonlyMap<string, PathKind>;

/** One letter per path, in order: the first path without one is the one that does not answer. */
const SCRIPT = `for path do
  if [ -d "$path" ]; then if [ -x "$path" ]; then echo d; else echo D; fi
  elif [ -f "$path" ] && [ -x "$path" ]; then echo x
  elif [ -e "$path" ]; then echo f
  else echo -; fi
done`;

/** Helpers of one owner at a time; those that hang count for as long as they hang. */
const MOST_OF_ONE = 4;
const MOST_IN_ALL = 64;

export interface PathProbesOptions {
  readonly clock: Clock;
  /** How long a path may take to answer. */
  readonly answerMs: number;
  readonly start: (plan: LaunchPlan, listener: ChildListener) => Promise<Child>;
}

export class PathProbes {
  private readonly options: PathProbesOptions;
  private readonly helpers = new Map<Owner, number>();
  private inAll = 0;
  private readonly waiting = new Set<{ readonly owner: Owner; readonly begin: () => void }>();
  private readonly underWay = new Map<string, Promise<PathAnswers>>();

  constructor(options: PathProbesOptions) {
    this.options = options;
  }

  /** Starts that ask the same at the same time share the answer. Rejects with `path_unresponsive`. */
  ask(owner: Owner, paths: readonly string[]): Promise<PathAnswers> {
    const key = [owner, ...paths].join('\0');
    const known = this.underWay.get(key);
    if (known) return known;
    const answers = this.probe(owner, paths).finally(() => this.underWay.delete(key));
    this.underWay.set(key, answers);
    return answers;
  }

  private probe(owner: Owner, paths: readonly string[]): Promise<PathAnswers> {
    const { clock, answerMs } = this.options;
    return new Promise((resolve, reject) => {
      let text = '';
      let pid: number | undefined;
      let isLate = false;
      const waiting = { owner, begin: () => void begin() };
      const late = (): void => {
        isLate = true;
        this.waiting.delete(waiting);
        // It ends when the file system lets it.
        if (pid !== undefined) signalGroup(pid, 'SIGKILL');
        reject(unresponsive(paths[text.length / 2] ?? paths[0] ?? '', answerMs));
      };
      const cancel = clock.after(answerMs, late);
      const ended = (): void => {
        cancel();
        this.leave(owner);
        const answers = answersOf(paths, text);
        if (answers) resolve(answers);
        else reject(unresponsive(paths[text.length / 2] ?? '', answerMs));
      };
      const begin = async (): Promise<void> => {
        this.enter(owner);
        const listener: ChildListener = {
          output: (_, bytes) => (text += bytes.toString('latin1')),
          exited: () => undefined,
          ended,
        };
        try {
          ({ pid } = await this.options.start(planOf(paths), listener));
          if (isLate) signalGroup(pid, 'SIGKILL');
        } catch (error) {
          cancel();
          this.leave(owner);
          reject(error);
        }
      };
      if (this.admits(owner)) void begin();
      else this.waiting.add(waiting);
    });
  }

  private admits(owner: Owner): boolean {
    return this.inAll < MOST_IN_ALL && (this.helpers.get(owner) ?? 0) < MOST_OF_ONE;
  }

  private enter(owner: Owner): void {
    this.inAll += 1;
    this.helpers.set(owner, (this.helpers.get(owner) ?? 0) + 1);
  }

  private leave(owner: Owner): void {
    this.inAll -= 1;
    const left = (this.helpers.get(owner) ?? 1) - 1;
    if (left > 0) this.helpers.set(owner, left);
    else this.helpers.delete(owner);
    for (const next of this.waiting) {
      if (!this.admits(next.owner)) continue;
      this.waiting.delete(next);
      next.begin();
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
