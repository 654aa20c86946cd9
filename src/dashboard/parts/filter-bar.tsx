// The field that filters processes, with the most used filters as buttons.

import type { ComponentChildren, RefObject } from 'preact';

interface Props {
  readonly field: RefObject<HTMLInputElement>;
  readonly text: string;
  /** Filter and title. */
  readonly chips: readonly (readonly [string, string])[];
  readonly filter: (text: string) => void;
  /** Enter was pressed. */
  readonly entered: () => void;
  /** How many there are. */
  readonly says: string;
  readonly children?: ComponentChildren;
}

export function FilterBar({ field, text, chips, filter, entered, says, children }: Props) {
  return (
    <div class="bar">
      <input
        type="search"
        ref={field}
        value={text.trimStart()}
        placeholder="Filter: words, owner:cli, label:chat=7, is:failed, -word"
        aria-label="Filter"
        onInput={({ currentTarget }) => filter(currentTarget.value)}
        onKeyDown={({ key, currentTarget }) => {
          if (key !== 'Escape' && key !== 'Enter') return;
          currentTarget.blur();
          if (key === 'Enter') entered();
        }}
      />
      <span class="chips">
        {chips.map(([q, title]) => (
          <button
            key={q}
            type="button"
            class="chip"
            aria-pressed={text === q}
            onClick={() => filter(q)}
          >
            {title}
          </button>
        ))}
      </span>
      {children}
      <span class="stretch" />
      <span class="muted" role="status">
        {says}
      </span>
    </div>
  );
}
