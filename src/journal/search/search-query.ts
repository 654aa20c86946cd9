// A search query, and the plan made from it after it has been checked.

import { HoldfastError } from '../../protocol/errors.ts';
import type { SearchPosition } from '../../protocol/views.ts';
import { textFinder } from './line-scan.ts';
import type { TextFinder } from './line-scan.ts';
import type { PieceSize } from './line-blocks.ts';

export interface SearchQuery {
  readonly pattern: string;
  readonly kind: 'text' | 'regex';
  readonly ignoreCase?: boolean | undefined;
  /** Byte offset, treated as the start of a line. */
  readonly from?: number | undefined;
  /** Byte offset where the search ends. */
  readonly to?: number | undefined;
  /** Continues where another search with the same pattern ended, instead of `from`. */
  readonly resume?: SearchPosition;
  /** Context lines before and after each hit. */
  readonly context?: number | undefined;
  readonly limit?: number | undefined;
  /** Count lines, from the first byte on. */
  readonly lineNumbers?: boolean | undefined;
  /** Longer lines are searched in overlapping pieces of this size. */
  readonly maxLineBytes?: number;
  /** Match on what was printed, control sequences included. */
  readonly raw?: boolean;
}

export interface SearchPlan {
  readonly finder: { readonly kind: 'text'; readonly text: TextFinder } | RegexPlan;
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  readonly resume?: SearchPosition | undefined;
  readonly context: number;
  readonly limit: number;
  readonly lineNumbers: boolean;
  readonly raw: boolean;
  readonly piece: PieceSize;
  /** Bytes at the start of a later piece in which no match may begin, because a character may be cut there. */
  readonly skipBytes: number;
}

export interface RegexPlan {
  readonly kind: 'regex';
  readonly source: string;
  readonly flags: string;
  /** Begins with ".*" or ".+". */
  readonly leadingRun: boolean;
}

const MAX_PATTERN_LENGTH = 4096;
const MAX_CONTEXT = 20;
const MAX_LIMIT = 1000;
const DEFAULT_LIMIT = 100;
const DEFAULT_LINE_BYTES = 64 * 1024;
const SMALLEST_LINE_BYTES = 1024;

export function planSearch(query: SearchQuery): SearchPlan {
  const { pattern, context = 0, limit = DEFAULT_LIMIT } = query;
  if (pattern === '') throw new HoldfastError('pattern_invalid', 'The pattern is empty.');
  if (pattern.length > MAX_PATTERN_LENGTH) {
    throw new HoldfastError(
      'pattern_invalid',
      `The pattern is longer than ${MAX_PATTERN_LENGTH} characters.`,
    );
  }
  if (!within(context, 0, MAX_CONTEXT))
    throw new HoldfastError('invalid_input', `context must be 0 to ${MAX_CONTEXT}.`);
  if (!within(limit, 1, MAX_LIMIT))
    throw new HoldfastError('invalid_input', `limit must be 1 to ${MAX_LIMIT}.`);
  const patternBytes = Buffer.byteLength(pattern);
  const bytes = Math.max(
    query.maxLineBytes ?? DEFAULT_LINE_BYTES,
    SMALLEST_LINE_BYTES,
    4 * patternBytes,
  );
  // A match that fits in the overlap is found wherever the line is split. Doubled for colour sequences in the match.
  const overlap = Math.floor(Math.max(bytes / 8, 2 * patternBytes));
  return {
    finder: query.kind === 'text' ? textPlan(query) : regexPlan(query),
    from: query.from,
    to: query.to,
    resume: query.resume,
    context,
    limit,
    lineNumbers: query.lineNumbers ?? false,
    raw: query.raw ?? false,
    piece: { bytes, overlap },
    skipBytes: Math.floor(overlap / 8),
  };
}

function within(value: number, least: number, most: number): boolean {
  return Number.isInteger(value) && value >= least && value <= most;
}

function textPlan({ pattern, ignoreCase = false }: SearchQuery): SearchPlan['finder'] {
  if (pattern.includes('\n')) {
    throw new HoldfastError(
      'pattern_invalid',
      'Matching is line by line: a text with a line break is never found.',
    );
  }
  return { kind: 'text', text: textFinder(pattern, ignoreCase) };
}

function regexPlan({ pattern: source, ignoreCase = false }: SearchQuery): RegexPlan {
  const leadingRun = /^\.[*+]/.test(source);
  const flags = ignoreCase ? 'gi' : 'g';
  if (compiles(source, `${flags}u`))
    return { kind: 'regex', source, flags: `${flags}u`, leadingRun };
  try {
    // Without "u" JavaScript accepts escapes of other dialects, such as "\-".
    void new RegExp(source, flags);
  } catch (thrown) {
    throw new HoldfastError(
      'pattern_invalid',
      thrown instanceof Error ? thrown.message : String(thrown),
    );
  }
  return { kind: 'regex', source, flags, leadingRun };
}

function compiles(source: string, flags: string): boolean {
  try {
    void new RegExp(source, flags);
    return true;
  } catch {
    return false;
  }
}
