// The coordination of runs with everything around it faked: a terminal without a shell.

import type { RunFinishedNote, RunStartedNote } from '../../src/protocol/run.ts';
import { identityOf, type Foreground } from '../../src/host/terminal/foreground.ts';
import { Runs, type RunTools } from '../../src/host/terminal/runs.ts';
import { Sentinel } from '../../src/host/terminal/sentinel.ts';
import { FakeClock } from './fake-clock.ts';

type Note = RunStartedNote | RunFinishedNote;

export class RunBench {
  readonly clock = new FakeClock();
  readonly notes: Note[] = [];
  readonly typed: string[] = [];
  readonly armed = new Set<Sentinel>();
  readonly statuses = new Map<Sentinel, (status: number) => void>();
  offset = 0;
  unread = false;
  unheard = false;
  edits = true;
  secret = false;
  reader: Foreground = { kind: 'other', name: 'program', pid: 1 };
  refuseAppend: Error | undefined;
  refuseType: Error | undefined;
  readonly runs: Runs;

  constructor(tools: Partial<RunTools> = {}) {
    this.runs = new Runs({
      clock: this.clock,
      append: (note) => {
        if (this.refuseAppend) throw this.refuseAppend;
        this.notes.push(note);
        return this.notes.length;
      },
      visible: () => Promise.resolve(),
      type: async (bytes) => {
        if (this.refuseType) throw this.refuseType;
        this.typed.push(bytes.toString());
      },
      offset: () => this.offset,
      unread: () => this.unread,
      unheard: () => this.unheard,
      echoes: () => true,
      secret: () => this.secret,
      arm: (onStatus) => {
        const sentinel = new Sentinel(onStatus);
        this.armed.add(sentinel);
        this.statuses.set(sentinel, onStatus);
        return sentinel;
      },
      disarm: (sentinel) => void this.armed.delete(sentinel),
      foreground: () => this.reader,
      edits: () => this.edits,
      marks: true,
      root: 1,
      argv: ['bash'],
      ...tools,
    });
  }

  /** The program that the terminal was opened with is a shell, and in front. */
  shellInFront(sleeps = true, argv: readonly string[] = ['bash']): void {
    const [name = ''] = argv;
    const language = name === 'fish' ? 'fish' : 'posix';
    this.reader = { kind: 'shell', name, pid: 1, language, identity: identityOf(1, argv), sleeps };
  }

  prompt(status = 0, cwd = '/'): void {
    this.runs.mark({ kind: 'end', status, cwd });
    this.runs.mark({ kind: 'ready' });
  }

  /** What the terminal shows, the offset moved on before it is reported, as the terminal does it. */
  print(text: string): void {
    this.offset += Buffer.byteLength(text);
    this.runs.output(Buffer.from(text));
  }

  get finished(): RunFinishedNote[] {
    return this.notes.filter((note) => note.note === 'runEnd');
  }
}

/** Everything that follows at once has happened. */
export const tick = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
};
