// Who reads a terminal, where the process in front changes between any two of the reads that tell who it is.
import { expect, it } from 'vitest';
import { foregroundOf, identityOf, type Foreground } from './foreground.ts';
import type { ProcessEntry } from '../../system/proc-table.ts';

/** A process as /proc shows it; undefined when it is gone. */
interface Look {
  readonly argv: string[];
  readonly name: string;
  readonly isFork?: boolean;
  readonly state?: string;
}

const PID = 7;

/** The answer when the change happens before the read of this number; undefined when there are fewer reads. */
function answerWhen(before: Look, after: Look | undefined, change: number): Foreground | undefined {
  let reads = 0;
  const now = (): Look | undefined => (reads++ < change ? before : after);
  const entryOf = (look: Look): ProcessEntry => ({
    pid: PID,
    state: look.state ?? 'S',
    parent: 1,
    group: PID,
    session: 1,
    terminal: 1,
    foreground: PID,
    isFork: look.isFork ?? false,
    isKernelThread: false,
    isExiting: false,
    environmentBytes: 1,
    startTicks: 1,
  });
  const found = foregroundOf(() => PID, {
    readEntry: () => {
      const look = now();
      return look && entryOf(look);
    },
    childrenOf: () => [],
    argumentsOf: () => now()?.argv ?? [],
    nameOf: () => now()?.name ?? '',
    inputOf: () => (now() ? '/dev/pts/1' : undefined),
  });
  return reads <= change ? undefined : found;
}

function answers(before: Look, after: Look | undefined): Foreground[] {
  const found: Foreground[] = [];
  for (let change = 0; ; change += 1) {
    const answer = answerWhen(before, after, change);
    if (!answer) return found;
    found.push(answer);
  }
}

const bash = { argv: ['bash', '--norc'], name: 'bash' };
const text = { argv: ['sh', '-c', 'exit 3'], name: 'sh' };

it('[TM122] a shell that runs one command and ends is never taken for one that reads', () => {
  // It has no arguments any more while it ends, and keeps its name as a zombie.
  for (const ended of [undefined, { argv: [], name: 'sh' }, { argv: [], name: 'sh', state: 'Z' }]) {
    const found = answers(text, ended);
    expect(found.length).toBeGreaterThan(3);
    expect(found.filter(({ kind }) => kind === 'shell')).toEqual([]);
  }
});

it('[TM122] a child that a shell has just made is never taken for it, nor for what it becomes by half', () => {
  const fork = { ...bash, isFork: true };
  const blank = { argv: [], name: 'sh' };
  for (const [before, after] of [
    [fork, blank],
    [fork, text],
    [blank, text],
  ] as const)
    expect(answers(before, after).filter(({ kind }) => kind === 'shell')).toEqual([]);
});

it('[TM122] exec is seen as the one program or the other, never as parts of both', () => {
  const zsh = { argv: ['zsh', '-f'], name: 'zsh' };
  const wholes = [bash, zsh].map(({ argv, name }) => ({ name, identity: identityOf(PID, argv) }));
  for (const found of [...answers(bash, zsh), ...answers(text, zsh)])
    if (found.kind === 'shell')
      expect(wholes).toContainEqual({ name: found.name, identity: found.identity });
    else expect(found.kind).toBe('soon');
});

it('[TM122] a group that has lost the terminal meanwhile is not the reader', () => {
  const groups = [PID, PID + 1];
  const table = {
    readEntry: () => undefined,
    childrenOf: () => [],
    argumentsOf: () => [],
    nameOf: () => '',
    inputOf: () => undefined,
  };
  expect(foregroundOf(() => groups.shift(), table)).toMatchObject({ kind: 'soon' });
});
