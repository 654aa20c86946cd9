// `holdfast wait`

import type { Met, WaitResult } from '../../protocol/host-api.ts';
import type { Condition } from '../../protocol/operations.ts';
import type { Answer, Command } from '../arguments/command.ts';
import { exitCodeOf, outcomeWords, STILL_RUNNING_EXIT } from '../output/outcome.ts';
import { showElapsed } from '../output/elapsed.ts';
import { quote } from '../output/terminal-text.ts';
import { formatDuration, parseDuration } from '../arguments/units.ts';
import type { Words } from '../arguments/words.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'wait',
  usage: 'ID... [--for CONDITION]... [--any] [--timeout 30s]',
  summary: summaries.wait,
  examples: [
    'holdfast wait tests',
    'holdfast wait web --for port=8080 --timeout 60s',
    "holdfast wait web --for 'text=ready' --for exit",
    'holdfast wait unit e2e --any',
  ],
  takes: 'processes',
  options: {
    for: {
      type: 'string',
      multiple: true,
      value: 'CONDITION',
      completes: ['exit', 'closed', 'settled', 'text=', 'regex=', 'port=', 'idle='],
      about: 'what to wait for (default exit); with several, the first that happens',
    },
    any: { type: 'boolean', about: 'return when the first of several processes is done' },
    timeout: {
      type: 'string',
      value: '30s',
      about: 'maximum time to wait (default: no limit)',
    },
  },
  notes: [
    'CONDITION: exit, closed (all output read), settled (no descendant is alive), text=TEXT, regex=PATTERN,',
    '  port or port=8080 (it or a descendant listens), idle=2s or silence=2s (no output for this long).',
    'Exit code: for exit, closed and settled that of the process, as with "run" (the first that is not 0);',
    `  for the others 0. ${STILL_RUNNING_EXIT}: the time passed. 1: the process has exited, so the condition cannot be met.`,
  ],
  read({ words, caller, out }) {
    const ids = words.expect('ID...');
    const given = words.texts('for').map((text) => condition(text, words));
    const conditions = given.length > 0 ? given : [{ kind: 'exit' } as const];
    const timeoutMs = words.durationMs('timeout');
    const mode = words.flag('any') ? 'first' : 'all';
    return async (): Promise<Answer> => {
      const processes = await Promise.all(ids.map((id) => caller.find(id)));
      const owners = new Set(processes.map(({ owner }) => owner));
      const [owner = caller.sees] = owners.size === 1 ? owners : [];
      const waits = processes.map(({ id }) => ({ id, for: conditions }));
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
    };
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
    `--for "${text}" is not one of exit, closed, settled, text=…, regex=…, port=…, idle=2s`,
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
      return quote(met.line ?? met.match ?? '');
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
