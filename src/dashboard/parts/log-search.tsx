// Searching the whole log of one process, in the server, and going from hit to hit.

import { useRef } from 'preact/hooks';
import { useKeys } from '../core/keyboard.ts';
import type { LogReader } from '../core/log-reader.ts';
import { countText } from '../model/words.ts';

export function LogSearch({ reader }: { readonly reader: LogReader }) {
  const field = useRef<HTMLInputElement>(null);
  useKeys([
    { keys: '/', label: 'search', run: () => field.current?.focus() },
    { keys: 'n', label: 'next hit', run: () => reader.toHit(reader.hitAt.value + 1) },
    { keys: 'N', run: () => reader.toHit(reader.hitAt.value - 1) },
  ]);
  const count = reader.hits.value.length;
  const says = reader.isSearching.value
    ? 'searching …'
    : count > 0
      ? `${countText(reader.hitAt.value + 1)} of ${count === 1000 ? 'the first ' : ''}${countText(count)}`
      : field.current?.value
        ? 'nothing found'
        : '';
  return (
    <div class="bar log-search">
      <input
        type="search"
        ref={field}
        placeholder="Search all of the output"
        aria-label="Search the output"
        onKeyDown={({ key, currentTarget }) => {
          if (key === 'Enter') void reader.search(currentTarget.value);
          if (key === 'Escape') currentTarget.value = '';
          if (key === 'Escape') void reader.search('');
          if (key === 'Enter' || key === 'Escape') currentTarget.blur();
        }}
      />
      <span class="muted" role="status">
        {says}
      </span>
      {count > 0 && (
        <>
          <button type="button" onClick={() => reader.toHit(reader.hitAt.value - 1)}>
            Previous
          </button>
          <button type="button" onClick={() => reader.toHit(reader.hitAt.value + 1)}>
            Next
          </button>
        </>
      )}
    </div>
  );
}
