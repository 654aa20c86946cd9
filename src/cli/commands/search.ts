// `holdfast search`

import type { SearchHit } from '../../protocol/views.ts';
import type { Answer, Command } from '../arguments/command.ts';
import { gapWords } from '../log/follow.ts';
import type { StyledLine } from '../output/output.ts';
import { plural } from '../arguments/units.ts';
import { summaries } from '../summaries.ts';

const DEFAULT_LIMIT = 100;

export const command: Command = {
  name: 'search',
  usage: 'ID PATTERN [--text] [-i] [-C N] [--limit N]',
  summary: summaries.search,
  takes: 'processes',
  options: {
    text: { type: 'boolean', short: 'F', about: 'PATTERN is plain text, not a regular expression' },
    'ignore-case': { type: 'boolean', short: 'i', about: 'case-insensitive' },
    context: {
      type: 'string',
      short: 'C',
      value: 'N',
      about: 'N lines of context around each match (at most 20)',
    },
    limit: {
      type: 'string',
      value: 'N',
      about: `at most N matches (default ${DEFAULT_LIMIT}, at most 1000)`,
    },
  },
  notes: [
    'Each line begins with its number, or with "@" and its byte offset where earlier output is no longer kept.',
    'Exit code 1: no match.',
  ],
  read({ words, caller, out }) {
    const [id = '', pattern = ''] = words.expect('ID', 'PATTERN');
    const context = words.count('context', 20);
    const limit = words.count('limit', 1000) ?? DEFAULT_LIMIT;
    const kind = words.flag('text') ? 'text' : 'regex';
    const query = {
      pattern,
      kind,
      limit,
      lineNumbers: true,
      ignoreCase: words.flag('ignore-case'),
      ...(context !== undefined && { context }),
    } as const;
    return async (): Promise<Answer> => {
      const process = await caller.find(id);
      const found = await caller.ask((host) =>
        host.search(process.owner, { id: process.id, ...query }),
      );
      if (!out.json) {
        if (found.missedBytes > 0) await out.note(gapWords(found.missedBytes, 'no longer stored'));
        if (found.truncated)
          await out.note(`there may be more than ${plural(limit, 'hit')}; --limit raises that.`);
      }
      const lines = found.hits.flatMap((hit, index) =>
        hitLines(hit, context !== undefined && index > 0),
      );
      return { result: { process, ...found }, lines, exitCode: found.hits.length > 0 ? 0 : 1 };
    };
  },
};

/** As grep does: a colon after the number of a match, a dash after that of a line of context. */
function hitLines(hit: SearchHit, separate: boolean): StyledLine[] {
  const { lineNumber, offset, before, after } = hit;
  const lead = lineNumber === undefined ? `@${offset}:` : `${lineNumber}:`;
  const around = (text: string, distance: number): StyledLine => ({
    lead: lineNumber === undefined ? ' '.repeat(lead.length) : `${lineNumber + distance}-`,
    text,
    printed: true,
  });
  return [
    ...(separate ? [{ text: '--' }] : []),
    ...before.map((text, index) => around(text, index - before.length)),
    { lead, text: hit.line, printed: true, mark: hit.match },
    ...after.map((text, index) => around(text, index + 1)),
  ];
}
