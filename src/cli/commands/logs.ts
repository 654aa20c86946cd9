// `holdfast logs`

import type { Answer, Command } from '../command.ts';
import { targetOf } from '../follow.ts';
import { LineFilter } from '../line-filter.ts';
import { Newest, readLog, type Wanted } from '../log-reading.ts';
import { parseMoment } from '../units.ts';
import type { Words } from '../words.ts';

export const command: Command = {
  name: 'logs',
  usage: 'ID [-f] [--since 10m] [--grep PATTERN] [--tail N] [--raw]',
  summary: 'Print what a process has printed.',
  options: {
    follow: { type: 'boolean', short: 'f', about: 'go on until nothing can follow' },
    since: {
      type: 'string',
      value: '10m',
      about: 'only what was printed since then: so long ago, or a time such as 2026-01-05T10:00Z',
    },
    grep: {
      type: 'string',
      value: 'PATTERN',
      about: 'only lines in which this regular expression is found',
    },
    'ignore-case': { type: 'boolean', short: 'i', about: 'for --grep: A is a' },
    tail: { type: 'string', short: 'n', value: 'N', about: 'only the last N lines of all that' },
    raw: { type: 'boolean', about: 'control characters go to a terminal as they are' },
  },
  notes: [
    'stdout goes to stdout and stderr to stderr. Piped, every byte is exact.',
    'With --json: the beginning and the end as text, at most 32 KiB; with --since, --grep or --tail the newest 1 MiB.',
  ],
  async run({ words, caller, out }): Promise<Answer> {
    const [id = ''] = words.exactly(1, 1);
    const wanted = wantedOf(words);
    if (out.json && wanted.follow) throw words.wrong('--json answers at once and goes without -f');
    const process = await caller.find(id);
    if (!out.json) {
      await readLog({ caller, process, wanted, target: targetOf(out) });
      return { result: undefined };
    }
    const { tail, sinceMs, filter } = wanted;
    if (tail === undefined && sinceMs === undefined && !filter)
      return { result: await caller.ask((host) => host.text(process.owner, { id: process.id })) };
    const newest = new Newest();
    await readLog({ caller, process, wanted, target: newest });
    return { result: { ...newest.told(), process } };
  },
};

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
