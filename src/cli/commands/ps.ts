// `holdfast ps`

import { listAll } from '../../protocol/list-all.ts';
import type { ProcessInfo, ProcessState } from '../../protocol/process.ts';
import type { Command } from '../arguments/command.ts';
import type { Style, StyledLine } from '../output/output.ts';
import { outcomeWords, stateWords } from '../output/outcome.ts';
import { alignedRows, cut, tabbedRow } from '../output/table.ts';
import { quote } from '../output/terminal-text.ts';
import { formatAge, formatBytes, formatDuration, plural } from '../arguments/units.ts';
import { summaries } from '../summaries.ts';

const states = ['running', 'exited', 'closed', 'lost'] as const satisfies readonly ProcessState[];

export const command: Command = {
  name: 'ps',
  usage: '[--all] [--state STATE] [--name TEXT] [-n N] [--fleet]',
  summary: summaries.ps,
  examples: ['holdfast ps', 'holdfast ps --all --json', 'holdfast ps --fleet'],
  options: {
    all: { type: 'boolean', short: 'a', about: 'include exited processes' },
    state: {
      type: 'string',
      value: 'STATE',
      completes: states,
      about: `only processes that are ${states.join(', ')}`,
    },
    name: { type: 'string', value: 'TEXT', about: 'only processes with TEXT in their name' },
    last: { type: 'string', short: 'n', value: 'N', about: 'only the newest N' },
    fleet: {
      type: 'boolean',
      about: 'the processes of all hosts, from the gateway of this machine; ids are HOST/ID',
    },
    quiet: { type: 'boolean', short: 'q', about: 'ids only' },
  },
  notes: [
    'On a terminal: columns, newest first. Piped: one line each, separated by tabs:',
    'id, state, outcome, started (ISO 8601), bytes, owner, name, command.',
  ],
  read({ words, caller, out }) {
    words.expect();
    const state = words.choice('state', states);
    const all = words.flag('all') || state !== undefined;
    const name = words.text('name');
    const most = words.count('last') ?? Infinity;
    const quiet = words.flag('quiet');
    const fleet = words.flag('fleet');
    return async () => {
      if (fleet) caller.useFleet();
      const host = await caller.hostIfUsed();
      const silent = new Set<string>();
      const every = host
        ? await listAll(async (page) => {
            const answer = await host.list(caller.sees, page);
            for (const name of answer.incomplete ?? []) silent.add(name);
            return answer;
          })
        : [];
      const wanted = every.filter(
        (process) =>
          (all || isLive(process)) &&
          (state === undefined || process.state === state) &&
          (name === undefined || process.name?.includes(name) === true),
      );
      const shown = wanted.slice(0, most);
      const incomplete = [...silent];
      const result = {
        processes: shown,
        total: every.length,
        ...(incomplete.length > 0 && { incomplete }),
      };
      if (incomplete.length > 0 && !out.json)
        await out.note(`Hosts that did not answer: ${incomplete.join(', ')}.`);
      if (quiet) return { result, lines: shown.map((process) => idOf(process)) };
      if (out.columns === undefined) return { result, lines: shown.map(plainRow) };
      const lines = shown.length > 0 ? table(shown, every, out.columns) : [none(state, name)];
      return { result, lines: [...lines, ...more(every, wanted, shown)] };
    };
  },
};

function none(state: string | undefined, name: string | undefined): string {
  return state === undefined && name === undefined
    ? 'No process is running.'
    : 'No process matches.';
}

/** What is not shown. */
function more(
  every: readonly ProcessInfo[],
  wanted: readonly ProcessInfo[],
  shown: readonly ProcessInfo[],
): string[] {
  const cutOff = wanted.length - shown.length;
  if (cutOff > 0) return [`${plural(cutOff, 'more', 'more')}, older ones.`];
  const ended = every.filter((process) => !isLive(process) && !wanted.includes(process)).length;
  return ended > 0
    ? [`${plural(ended, 'process', 'processes')} ended; "ps --all" lists them.`]
    : [];
}

/** Behind the host that it is at, if it is one of a fleet. */
function idOf({ id, host }: ProcessInfo, length?: number): string {
  return `${host === undefined ? '' : `${host}/`}${id.slice(0, length)}`;
}

/** Something of it may still print or run. */
function isLive({ state, settled }: ProcessInfo): boolean {
  return state === 'running' || state === 'exited' || !settled;
}

function plainRow(process: ProcessInfo): string {
  const { state, outcome, startedAtMs, bytes, owner, name, command: line } = process;
  const started = new Date(startedAtMs).toISOString();
  return tabbedRow([
    idOf(process),
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
  const costly = shown.some(({ usage }) => usage !== undefined);
  const leased = shown.some(({ lease }) => lease !== undefined);
  const mixed = new Set(shown.map(({ owner }) => owner)).size > 1;
  const rows = shown.map((process) => [
    idOf(process, length),
    formatAge(now - process.startedAtMs),
    process.state,
    stateWords(process),
    formatBytes(process.bytes.total),
    ...(costly ? [costOf(process)] : []),
    ...(mixed ? [cut(quote(process.owner), 20)] : []),
    ...(leased ? [cut(process.lease ?? '', 20)] : []),
    ...(named ? [cut(quote(process.name ?? ''), 20)] : []),
    process.command,
  ]);
  const heading = [
    'ID',
    'AGE',
    'STATE',
    'OUTCOME',
    'BYTES',
    ...(costly ? ['CPU'] : []),
    ...(mixed ? ['OWNER'] : []),
    ...(leased ? ['LEASE'] : []),
    ...(named ? ['NAME'] : []),
    'COMMAND',
  ];
  return alignedRows([heading, ...rows], width).map((text, index) => {
    const process = shown[index - 1];
    return { text, style: process ? styleOf(process) : 'bold' };
  });
}

/** Processor time; known when it has ended. */
function costOf({ usage }: ProcessInfo): string {
  return usage ? formatDuration(usage.userMs + usage.systemMs) : '';
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
