// `holdfast ps`

import type { ProcessInfo } from '../../protocol/process.ts';
import type { Command, StyledLine } from '../command.ts';
import type { Style } from '../output.ts';
import { outcomeWords, stateWords } from '../outcome.ts';
import { alignedRows, cut, tabbedRow } from '../table.ts';
import { formatAge, formatBytes, plural } from '../units.ts';

export const command: Command = {
  name: 'ps',
  usage: '[--all]',
  summary: 'List the processes that are alive; with --all the ended ones too.',
  options: {
    all: { type: 'boolean', short: 'a', about: 'ended processes as well' },
    quiet: { type: 'boolean', short: 'q', about: 'ids only' },
  },
  notes: [
    'On a terminal: columns, newest first. Piped: one line each, separated by tabs:',
    'id, state, outcome, started (ISO 8601), bytes, owner, name, command.',
  ],
  async run({ words, caller, out }) {
    words.exactly(0, 0);
    const host = await caller.hostIfUsed();
    const every = host ? (await host.list(caller.sees, {})).processes : [];
    const shown = words.flag('all') ? every : every.filter(isLive);
    const ended = every.length - shown.length;
    const result = { processes: shown, total: every.length };
    if (words.flag('quiet')) return { result, lines: shown.map(({ id }) => id) };
    if (out.columns === undefined) return { result, lines: shown.map(plainRow) };
    const lines = shown.length > 0 ? table(shown, every, out.columns) : ['No process is running.'];
    const more =
      ended > 0 ? [`${plural(ended, 'process', 'processes')} ended; "ps --all" lists them.`] : [];
    return { result, lines: [...lines, ...more] };
  },
};

/** Something of it may still print or run. */
function isLive({ state, settled }: ProcessInfo): boolean {
  return state === 'running' || state === 'exited' || !settled;
}

function plainRow(process: ProcessInfo): string {
  const { id, state, outcome, startedAtMs, bytes, owner, name, command: line } = process;
  const started = new Date(startedAtMs).toISOString();
  return tabbedRow([
    id,
    state,
    outcome ? outcomeWords(outcome) : '',
    started,
    `${bytes.total}`,
    owner,
    name ?? '',
    line,
  ]);
}

function table(
  shown: readonly ProcessInfo[],
  every: readonly ProcessInfo[],
  width: number,
): StyledLine[] {
  const now = Date.now();
  const length = shortestUnique(every.map(({ id }) => id));
  const named = shown.some(({ name }) => name !== undefined);
  const rows = shown.map((process) => [
    process.id.slice(0, length),
    formatAge(now - process.startedAtMs),
    process.state,
    stateWords(process),
    formatBytes(process.bytes.total),
    ...(named ? [cut(process.name ?? '', 20)] : []),
    process.command,
  ]);
  const heading = ['ID', 'AGE', 'STATE', 'OUTCOME', 'BYTES', ...(named ? ['NAME'] : []), 'COMMAND'];
  return alignedRows([heading, ...rows], width).map((text, index) => {
    const process = shown[index - 1];
    return { text, style: process ? styleOf(process) : 'bold' };
  });
}

function styleOf({ outcome }: ProcessInfo): Style {
  if (outcome === undefined) return 'green';
  return outcome.kind === 'exit' && outcome.code === 0 ? 'dim' : 'red';
}

const SHORT_ID = 8;

/** How many letters tell all ids apart. */
function shortestUnique(ids: readonly string[]): number {
  const sorted = [...new Set(ids)].sort();
  let length = SHORT_ID;
  for (const [index, id] of sorted.entries()) {
    const next = sorted[index + 1] ?? '';
    let same = 0;
    while (same < id.length && id[same] === next[same]) same += 1;
    length = Math.max(length, same + 1);
  }
  return length;
}
