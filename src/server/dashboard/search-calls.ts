// What the search over all processes does.

import { toErrorShape } from '../../protocol/errors.ts';
import { searchAll, type SearchAllLine } from '../../protocol/dashboard/search-all.ts';
import type { HostApi } from '../../protocol/host-api.ts';
import { sendLines } from '../http/unread-answers.ts';
import type { Calls } from '../native/call.ts';

const HEADERS = {
  'Content-Type': 'application/x-ndjson',
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
};

export function searchCalls({ host }: { readonly host: HostApi }) {
  return {
    searchAll: async ({ exchange, owner, query: { owner: _owner, ...wanted } }) => {
      const { gone } = exchange;
      const searchable = {
        list: (filter: Parameters<HostApi['list']>[1]) => host.list(owner.sees, filter),
        search: (of: string, params: Parameters<HostApi['search']>[1]) =>
          host.search(of, params, gone),
      };
      await sendLines(exchange, HEADERS, jsonLines(searchAll(searchable, wanted, gone)));
    },
  } satisfies Partial<Calls>;
}

/** An error before the first line is answered with its status, a later one as the last line. */
async function* jsonLines(lines: AsyncIterable<SearchAllLine>): AsyncGenerator<string> {
  let begun = false;
  try {
    for await (const line of lines) {
      begun = true;
      yield `${JSON.stringify(line)}\n`;
    }
  } catch (error) {
    if (!begun) throw error;
    yield `${JSON.stringify({ type: 'problem', error: toErrorShape(error) })}\n`;
  }
}
