// The state of a process as a glyph, a word and a tone: never by colour alone.

import type { Outcome, ProcessInfo } from '../../protocol/process.ts';
import type { Need } from '../../protocol/dashboard/attention.ts';
import { visibleText } from './words.ts';

export interface StateWords {
  readonly glyph: string;
  readonly word: string;
  readonly tone: 'accent' | 'good' | 'warn' | 'bad' | 'muted';
}

type Stated = Pick<ProcessInfo, 'state' | 'outcome' | 'settled' | 'degraded'>;

export function stateWords({ state, outcome, settled, degraded }: Stated): StateWords {
  if (state === 'running' || !outcome)
    return degraded === undefined
      ? { glyph: '●', word: 'runs', tone: 'accent' }
      : { glyph: '!', word: 'runs, output not stored', tone: 'warn' };
  const ended = outcomeWords(outcome);
  if (state === 'exited') return { ...ended, glyph: '◐', word: `${ended.word}, output open` };
  if (!settled && state !== 'lost')
    return {
      ...ended,
      word: `${ended.word}, some alive`,
      tone: ended.tone === 'good' ? 'warn' : ended.tone,
    };
  return ended;
}

function outcomeWords(outcome: Outcome): StateWords {
  switch (outcome.kind) {
    case 'exit':
      return outcome.code === 0
        ? { glyph: '✓', word: 'exit 0', tone: 'good' }
        : { glyph: '■', word: `exit ${outcome.code}`, tone: 'bad' };
    case 'signal':
      return { glyph: '◆', word: `${outcome.signal} by ${visibleText(outcome.by)}`, tone: 'warn' };
    case 'timeout':
      return { glyph: '◷', word: 'hard timeout', tone: 'bad' };
    case 'oom':
      return { glyph: '▲', word: 'out of memory', tone: 'bad' };
    case 'lost':
      return { glyph: '◌', word: 'lost', tone: 'warn' };
  }
}

const NEEDS = { asked: 'asks', reads: 'waits for input', quiet: 'is silent' } as const;

export function needWords({ reason }: Pick<Need, 'reason'>): StateWords {
  return { glyph: '‼', word: NEEDS[reason], tone: 'warn' };
}

/** It ended, and not as its author wanted. */
export function hasFailed({ outcome }: Pick<ProcessInfo, 'outcome'>): boolean {
  return outcome !== undefined && !(outcome.kind === 'exit' && outcome.code === 0);
}
