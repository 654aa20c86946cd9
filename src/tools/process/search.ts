// process_search: finds lines in all stored output, without returning all of it.

import { stripAnsi } from '../../base/bytes/ansi.ts';
import type { SearchHit } from '../../protocol/views.ts';
import { UNTRUSTED } from './command-answer.ts';
import { reportAsFailure } from '../tool-errors.ts';
import type { ToolInput } from '../tool-inputs.ts';
import type { ToolOutput } from '../tool-outputs.ts';
import type { ToolCall, ToolContext } from '../tool-context.ts';

const DEFAULT_CONTEXT = 2;
const DEFAULT_LIMIT = 20;

type SearchAnswer = ToolOutput<'process_search'>;
type Hit = NonNullable<SearchAnswer['hits']>[number];

export async function processSearch(
  context: ToolContext,
  input: ToolInput<'process_search'>,
  call: ToolCall,
): Promise<SearchAnswer> {
  return reportAsFailure('search output', call.signal, async () => {
    const found = await context.api.search(
      {
        id: input.process_id,
        pattern: input.pattern,
        kind: input.regex === true ? 'regex' : 'text',
        ignoreCase: input.ignore_case === true,
        context: input.context ?? DEFAULT_CONTEXT,
        limit: input.limit ?? DEFAULT_LIMIT,
        ...(input.offset !== undefined && { from: input.offset }),
      },
      call.signal,
    );
    const hits = withoutRepeats(found.hits).map(hitOf);
    const fit = within(hits, context.settings.maxOutputBytes);
    const next = fit < hits.length ? hits[fit]?.offset : moreFrom(found);
    return {
      success: true,
      hits: hits.slice(0, fit),
      ...(fit > 0 && { output_is: UNTRUSTED }),
      searched_bytes: found.searchedTo - found.searchedFrom,
      ...(found.missedBytes > 0 && { missing_bytes: found.missedBytes }),
      ...(next !== undefined && { next_offset: next }),
    };
  });
}

/** Context lines of close hits are returned once, as grep does. */
function withoutRepeats(hits: readonly SearchHit[]): SearchHit[] {
  const shown: SearchHit[] = [];
  for (const hit of hits) {
    const last = shown.at(-1);
    const between = last && linesBetween(last, hit);
    if (last && between) {
      const after = last.after.slice(0, between.length);
      shown[shown.length - 1] = { ...last, after };
      shown.push({ ...hit, before: between.slice(after.length) });
    } else shown.push(hit);
  }
  return shown;
}

/** All lines between two hits if their contexts have them, which is when the bytes add up. */
function linesBetween(one: SearchHit, two: SearchHit): readonly string[] | undefined {
  const bytes = two.offset - one.endOffset;
  for (const lineEnd of [1, 2])
    for (let count = 0; count <= one.after.length + two.before.length; count += 1) {
      const fromTwo = Math.max(0, count - one.after.length);
      const lines = [
        ...one.after.slice(0, count - fromTwo),
        ...two.before.slice(two.before.length - fromTwo),
      ];
      const size = lines.reduce(
        (total, line) => total + Buffer.byteLength(line) + lineEnd,
        lineEnd,
      );
      if (size === bytes) return lines;
    }
  return undefined;
}

function moreFrom({
  truncated,
  hits,
}: {
  truncated: boolean;
  hits: readonly SearchHit[];
}): number | undefined {
  // After the line break of the last hit.
  const last = hits.at(-1);
  return truncated && last ? last.endOffset + 1 : undefined;
}

function hitOf({ offset, line, before, after }: SearchHit): Hit {
  return {
    offset,
    line: readable(line),
    ...(before.length > 0 && { before: before.map(readable) }),
    ...(after.length > 0 && { after: after.map(readable) }),
  };
}

function readable(line: string): string {
  // oxlint-disable-next-line no-control-regex
  return stripAnsi(line).replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, '');
}

function within(hits: readonly Hit[], maxBytes: number): number {
  let left = maxBytes;
  const tooMany = hits.findIndex((hit) => {
    left -= Buffer.byteLength(JSON.stringify(hit));
    return left < 0;
  });
  return tooMany < 0 ? hits.length : Math.max(1, tooMany);
}
