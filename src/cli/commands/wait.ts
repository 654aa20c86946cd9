// `holdfast wait`

import type { Met, WaitResult } from '../../protocol/host-api.ts';
import type { Condition } from '../../protocol/operations.ts';
import type { Answer, Command } from '../command.ts';
import { exitCodeOf, outcomeWords, STILL_RUNNING_EXIT } from '../outcome.ts';
import { showElapsed } from '../elapsed.ts';
import { label } from '../terminal-text.ts';
import { formatDuration, parseDuration } from '../units.ts';
import type { Words } from '../words.ts';

export const command: Command = {
  name: 'wait',
  usage: 'ID... [--for CONDITION]... [--any] [--timeout 30s]',
  summary: 'Wait until something has happened. Never ends a process.',
  options: {
    for: {
      type: 'string',
      multiple: true,
      value: 'CONDITION',
      about: 'what to wait for (default exit); the first of several counts',
    },
    any: { type: 'boolean', about: 'the first of several processes is enough' },
    timeout: {
      type: 'string',
      value: '30s',
      about: 'how long to wait at most (default: as long as it takes)',
    },
  },
  notes: [
    'CONDITION: exit, closed (and its output complete), settled (and no descendant left), text=TEXT, regex=PATTERN,',
    '  port or port=8080 (it or a descendant listens), idle=2s or silence=2s (nothing printed so long).',
    'Exit code: for exit, closed and settled that of the process, as "run" gives it (the first that is not 0);',
    `  for the others 0. ${STILL_RUNNING_EXIT}: the time was over. 1: it can no longer happen, the process has ended.`,
  ],
  async run({ words, caller, out }): Promise<Answer> {
    const ids = words.exactly(1, Infinity);
    const given = words.texts('for').map((text) => condition(text, words));
    const conditions = given.length > 0 ? given : [{ kind: 'exit' } as const];
    const timeoutMs = words.durationMs('timeout');
    const processes = await Promise.all(ids.map((id) => caller.find(id)));
    const owners = new Set(processes.map(({ owner }) => owner));
    const [owner = caller.sees] = owners.size === 1 ? owners : [];
    const waits = processes.map(({ id }) => ({ id, for: conditions }));
    const mode = words.flag('any') ? 'first' : 'all';
    const params = { waits, mode, ...(timeoutMs !== undefined && { timeoutMs }) } as const;
    const [first] = processes;
    const watch = first && showElapsed(out, first, 'Ctrl-C stops waiting');
    const result = await caller
      .ask((host) => host.wait(owner, params))
      .finally(() => watch?.stop());
    const lines = result.met.map((met) => `${met.id}  ${metWords(met)}`);
    const over = result.timedOut
      ? [`Not within ${formatDuration(timeoutMs ?? 0)}; still running.`]
      : [];
    return { result, lines: [...lines, ...over], exitCode: exitCode(result) };
  },
};

function condition(text: string, words: Words): Condition {
  const equals = text.indexOf('=');
  const kind = equals < 0 ? text : text.slice(0, equals);
  const value = equals < 0 ? undefined : text.slice(equals + 1);
  if (kind === 'exit' || kind === 'closed' || kind === 'settled') {
    if (value === undefined) return { kind };
  } else if (kind === 'text' && value) {
    return { kind, text: value };
  } else if (kind === 'regex' && value) {
    return { kind: 'pattern', pattern: value };
  } else if (kind === 'port') {
    if (value === undefined) return { kind };
    const port = Number(value);
    if (/^\d+$/.test(value) && port >= 1 && port <= 65535) return { kind, port };
  } else if ((kind === 'silence' || kind === 'idle') && value !== undefined) {
    const forMs = parseDuration(value);
    if (forMs !== undefined && forMs > 0) return { kind: 'silence', forMs };
  }
  throw words.wrong(
    `--for "${label(text)}" is not one of exit, closed, settled, text=…, regex=…, port=…, idle=2s`,
  );
}

function metWords(met: Met): string {
  const { outcome } = met.process;
  const ending = outcome ? outcomeWords(outcome) : 'ended';
  if (!met.met) return `${met.kind} can no longer happen: ${ending}`;
  switch (met.kind) {
    case 'exit':
      return ending;
    case 'closed':
    case 'settled':
      return `${met.kind}, ${ending}`;
    case 'text':
    case 'pattern':
      return label(met.line ?? met.match ?? '');
    case 'port':
      return `listens on port ${met.port ?? '?'}`;
    case 'silence':
    case 'growth':
      return met.kind;
  }
}

function exitCode({ met, timedOut }: WaitResult): number {
  if (timedOut) return STILL_RUNNING_EXIT;
  if (met.some((each) => !each.met)) return 1;
  const ended = met.filter(
    ({ kind }) => kind === 'exit' || kind === 'closed' || kind === 'settled',
  );
  const codes = ended.map(({ process }) => (process.outcome ? exitCodeOf(process.outcome) : 0));
  return codes.find((code) => code !== 0) ?? 0;
}
