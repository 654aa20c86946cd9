// `holdfast search`

import {
  searchAll,
  type Searchable,
  type SearchAllLine,
  type SearchAllParams,
} from '../../protocol/dashboard/search-all.ts';
import type { SearchHit } from '../../protocol/views.ts';
import type { Answer, Command } from '../arguments/command.ts';
import type { Caller } from '../caller.ts';
import { gapWords } from '../log/follow.ts';
import type { Output, StyledLine } from '../output/output.ts';
import { Progress } from '../output/progress.ts';
import { quote } from '../output/terminal-text.ts';
import { plural } from '../arguments/units.ts';
import { summaries } from '../summaries.ts';

const DEFAULT_LIMIT = 100;

export const command: Command = {
  name: 'search',
  usage: 'ID PATTERN | --all PATTERN [--text] [-i] [-C N] [--limit N]',
  summary: summaries.search,
  examples: ["holdfast search build 'error' --context 2", "holdfast search --all 'ECONNREFUSED'"],
  takes: 'processes',
  options: {
    all: { type: 'boolean', short: 'a', about: 'search every process, the newest first' },
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
    const all = words.flag('all');
    const named = all ? ['', ...words.expect('PATTERN')] : words.expect('ID', 'PATTERN');
    const [id = '', pattern = ''] = named;
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
    if (all) return () => searchEverything(caller, query, out);
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
      const lines = linesOf(found.hits, context !== undefined);
      return { result: { process, ...found }, lines, exitCode: found.hits.length > 0 ? 0 : 1 };
    };
  },
};

type Hits = Extract<SearchAllLine, { type: 'hits' }>;

/** Hits of the newest process first, each behind the id of its process. */
async function searchEverything(
  caller: Caller,
  { lineNumbers: _lineNumbers, ...query }: SearchAllParams & { readonly lineNumbers: boolean },
  out: Output,
): Promise<Answer> {
  const host = await caller.hostIfUsed();
  const found: Hits[] = [];
  let isCut = false;
  const searchable: Searchable | undefined = host && {
    list: (filter) => host.list(caller.sees, filter),
    search: (owner, params) => host.search(owner, params),
  };
  const lines = searchable ? searchAll(searchable, query) : [];
  const progress = new Progress(
    out,
    (done, all) => `${done} of ${plural(all, 'process', 'processes')} searched`,
  );
  for await (const line of lines) {
    if (line.type === 'hits') found.push(line);
    if (line.type === 'end') isCut = line.next !== undefined;
    if (line.type === 'progress') progress.at(line.searched, line.total);
  }
  isCut ||= found.some(({ truncated }) => truncated);
  if (isCut && !out.json) await out.note('there may be more; --limit raises the number of hits.');
  const shown = found.flatMap(({ process, hits }) =>
    linesOf(hits, query.context !== undefined).map((line) => ({
      ...line,
      lead: `${process.name === undefined ? process.id.slice(0, 8) : quote(process.name)} ${line.lead ?? ''}`,
    })),
  );
  return { result: { found, truncated: isCut }, lines: shown, exitCode: found.length > 0 ? 0 : 1 };
}

/**
 * As grep does: a colon after the number of a match, a dash after that of a line of context, "--" where lines are left out. A
 * line that is near two matches is shown once.
 */
function linesOf(hits: readonly SearchHit[], separate: boolean): StyledLine[] {
  const lines: StyledLine[] = [];
  /** The number of the last line shown. */
  let last = 0;
  for (const [index, hit] of hits.entries()) {
    const { lineNumber: number, offset, before, after } = hit;
    const lead = number === undefined ? `@${offset}:` : `${number}:`;
    const around = (text: string, distance: number): StyledLine => ({
      lead: number === undefined ? ' '.repeat(lead.length) : `${number + distance}-`,
      text,
      printed: true,
    });
    const first = number === undefined ? Infinity : number - before.length;
    // The lines of context behind the match before this one that are this match, or before it.
    const known = Math.max(0, last + 1 - first);
    if (known > before.length) lines.splice(lines.length - (known - before.length));
    else if (separate && index > 0 && first > last + 1) lines.push({ text: '--' });
    lines.push(
      ...before.map((text, at) => around(text, at - before.length)).slice(known),
      { lead, text: hit.line, printed: true, mark: hit.match },
      ...after.map((text, at) => around(text, at + 1)),
    );
    last = number === undefined ? 0 : number + after.length;
  }
  return lines;
}
