// `holdfast search`

import type { SearchHit } from '../../protocol/views.ts';
import type { Answer, Command } from '../command.ts';
import { gapWords } from '../follow.ts';
import { plural } from '../units.ts';

const DEFAULT_LIMIT = 100;

export const command: Command = {
  name: 'search',
  usage: 'ID PATTERN [--text] [-i] [-C N] [--limit N]',
  summary: 'Find lines in all that a process has printed.',
  options: {
    text: { type: 'boolean', short: 'F', about: 'PATTERN is plain text, not a regular expression' },
    'ignore-case': { type: 'boolean', short: 'i', about: 'upper and lower case are the same' },
    context: {
      type: 'string',
      short: 'C',
      value: 'N',
      about: 'N lines around each hit (at most 20)',
    },
    limit: {
      type: 'string',
      value: 'N',
      about: `at most N hits (default ${DEFAULT_LIMIT}, at most 1000)`,
    },
  },
  notes: ['Each line is led by the byte at which it begins. Exits with 1 when there is no hit.'],
  async run({ words, caller, out }): Promise<Answer> {
    const [id = '', pattern = ''] = words.exactly(2, 2);
    const context = words.count('context');
    const limit = words.count('limit') ?? DEFAULT_LIMIT;
    const process = await caller.find(id);
    const kind = words.flag('text') ? 'text' : 'regex';
    const query = {
      pattern,
      kind,
      limit,
      ignoreCase: words.flag('ignore-case'),
      ...(context !== undefined && { context }),
    } as const;
    const found = await caller.ask((host) =>
      host.search(process.owner, { id: process.id, ...query }),
    );
    if (!out.json) {
      if (found.missedBytes > 0) await out.note(gapWords(found.missedBytes, 'no longer kept'));
      if (found.truncated)
        await out.note(`there may be more than ${plural(limit, 'hit')}; --limit raises that.`);
    }
    const lines = found.hits.flatMap((hit, index) =>
      hitLines(hit, context !== undefined && index > 0),
    );
    return { result: { process, ...found }, lines, exitCode: found.hits.length > 0 ? 0 : 1 };
  },
};

function hitLines(hit: SearchHit, separate: boolean): string[] {
  const lead = `${hit.offset}:`;
  const around = (line: string): string => `${' '.repeat(lead.length)}${line}`;
  return [
    ...(separate ? ['--'] : []),
    ...hit.before.map(around),
    lead + hit.line,
    ...hit.after.map(around),
  ];
}
