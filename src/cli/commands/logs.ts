// `holdfast logs`

import type { ProcessInfo } from '../../protocol/process.ts';
import { isError, type Caller } from '../caller.ts';
import type { Answer, Command } from '../arguments/command.ts';
import { targetOf } from '../log/follow.ts';
import { JsonLines } from '../log/json-lines.ts';
import { LineFilter } from '../log/line-filter.ts';
import { Newest, readLog, type Wanted } from '../log/reading.ts';
import { endNote, FAILED_EXIT } from '../output/outcome.ts';
import type { Output } from '../output/output.ts';
import { parseMoment } from '../arguments/units.ts';
import type { Words } from '../arguments/words.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'logs',
  usage: 'ID [-f] [--since 10m] [--grep PATTERN] [--tail N] [--raw]',
  summary: summaries.logs,
  examples: [
    'holdfast logs web --tail 20',
    "holdfast logs tests --grep 'FAIL|Error' --since 10m",
    'holdfast logs -f web',
  ],
  takes: 'processes',
  options: {
    follow: {
      type: 'boolean',
      short: 'f',
      about: 'keep following until the process has exited and its output is closed',
    },
    since: {
      type: 'string',
      value: '10m',
      about: 'only output since then: a duration such as 10m, or a time such as 2026-01-05T10:00Z',
    },
    grep: {
      type: 'string',
      value: 'PATTERN',
      about: 'only lines that match this regular expression',
    },
    'ignore-case': {
      type: 'boolean',
      short: 'i',
      about: 'case-insensitive --grep',
    },
    tail: { type: 'string', short: 'n', value: 'N', about: 'only the last N of these lines' },
    color: {
      type: 'boolean',
      about: 'show colours on a terminal (default for processes with a terminal)',
    },
    raw: { type: 'boolean', about: 'send control characters to the terminal unchanged' },
  },
  notes: [
    'stdout goes to stdout and stderr to stderr. A pipe gets the exact bytes.',
    'With --json: the first and last part as text, up to 32 KiB; with --since, --grep or --tail the newest 1 MiB.',
    'With -f and --json: one object per line, {"event":"output","stream":"stdout","text":"..."}, the last one "end".',
    `Exit code: 0; ${FAILED_EXIT} if the keeper died while following.`,
  ],
  read({ words, caller, out }) {
    const [id = ''] = words.expect('ID');
    const wanted = wantedOf(words);
    const colours = words.flag('color');
    return async () => {
      const process = await caller.find(id);
      if (wanted.follow) return followLog({ caller, process, wanted, out, colours });
      if (out.json) return { result: await textOf(caller, process, wanted) };
      if (colours || process.streams === 'pty') out.passColours();
      await readLog({ caller, process, wanted, target: targetOf(out) });
      return { result: undefined };
    };
  },
};

async function textOf(caller: Caller, process: ProcessInfo, wanted: Wanted): Promise<unknown> {
  const { tail, sinceMs, filter } = wanted;
  const { id, owner } = process;
  if (tail === undefined && sinceMs === undefined && !filter)
    return caller.ask((host) => host.text(owner, { id }));
  const newest = new Newest();
  await readLog({ caller, process, wanted, target: newest });
  return { ...newest.content(), process };
}

interface Following {
  readonly caller: Caller;
  readonly process: ProcessInfo;
  readonly wanted: Wanted;
  readonly out: Output;
  readonly colours: boolean;
}

/** Follows to the end. An unknown end (the keeper died) is reported, as `run` does. */
async function followLog({ caller, process, wanted, out, colours }: Following): Promise<Answer> {
  const { id, owner } = process;
  if (colours || process.streams === 'pty') out.passColours();
  const lines = out.json ? new JsonLines(out) : undefined;
  await readLog({ caller, process, wanted, target: lines ?? targetOf(out) });
  const now = await caller
    .ask((host) => host.get(owner, { id }))
    .catch((error: unknown) => {
      // Deleted at the same moment: all its output has been printed.
      if (!isError(error, 'not_found')) throw error;
    });
  await lines?.end(now?.outcome);
  const lost = now?.outcome?.kind === 'lost' && process.outcome === undefined;
  const note = lost && now?.outcome ? endNote(now.outcome) : undefined;
  if (note !== undefined && !out.json) await out.note(note, { style: 'red' });
  return { result: undefined, said: true, exitCode: lost ? FAILED_EXIT : 0 };
}

function wantedOf(words: Words): Wanted {
  const tail = words.count('tail');
  const from = words.text('since');
  const sinceMs = from === undefined ? undefined : parseMoment(from, Date.now());
  if (from !== undefined && sinceMs === undefined)
    throw words.wrong(`--since "${from}" is neither a duration such as 10m nor a time`);
  const pattern = words.text('grep');
  const filter = pattern === undefined ? undefined : new LineFilter(regex(pattern, words));
  return { follow: words.flag('follow'), tail, sinceMs, filter };
}

function regex(pattern: string, words: Words): RegExp {
  try {
    return new RegExp(pattern, words.flag('ignore-case') ? 'iu' : 'u');
  } catch {
    throw words.wrong(`--grep "${pattern}" is not a regular expression`);
  }
}
