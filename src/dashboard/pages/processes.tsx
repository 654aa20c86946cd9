// All processes, live. The filter is in the address, so a view can be kept as a bookmark.

import { useSignal } from '@preact/signals';
import { useMemo, useRef } from 'preact/hooks';
import { useKeys } from '../core/keyboard.ts';
import { keyOf, listLoaded, listProblem, processes } from '../core/processes.ts';
import { go, place, setQuery } from '../core/route.ts';
import { density } from '../core/settings.ts';
import { parseFilter } from '../model/filter.ts';
import { countText } from '../model/words.ts';
import { ProcessList, processLink } from '../parts/process-list.tsx';
import { Snippet } from '../parts/snippet.tsx';
import { askToStop } from '../parts/stop.tsx';

const CHIPS: readonly [string, string][] = [
  ['', 'all'],
  ['is:running', 'running'],
  ['is:failed', 'failed'],
  ['is:ended', 'ended'],
  ['is:terminal', 'terminals'],
];

const PAGE_ROWS = 20;

export function ProcessesPage() {
  const field = useRef<HTMLInputElement>(null);
  const chosen = useSignal<string | undefined>(undefined);
  const text = place.value.query.get('q') ?? '';
  const all = processes.value;
  const rows = useMemo(() => all.filter(parseFilter(text)), [all, text]);
  const at = rows.findIndex((row) => keyOf(row) === chosen.value);
  const row = rows[at];
  const move = (to: number): void => {
    const target = rows[Math.max(0, Math.min(rows.length - 1, to))];
    if (target) chosen.value = keyOf(target);
  };
  const step = (by: number) => (): void => move(at < 0 ? 0 : at + by);
  useKeys([
    { keys: 'j', label: 'down', run: step(1) },
    { keys: 'k', label: 'up', run: step(-1) },
    { keys: 'ArrowDown', run: step(1) },
    { keys: 'ArrowUp', run: step(-1) },
    { keys: 'PageDown', run: step(PAGE_ROWS) },
    { keys: 'PageUp', run: step(-PAGE_ROWS) },
    { keys: 'Home', run: () => move(0) },
    { keys: 'End', run: () => move(rows.length - 1) },
    { keys: 'Enter', label: 'open', run: () => row && go(processLink(row)) },
    { keys: 'x', label: 'stop', run: () => row && askToStop(row) },
    { keys: '/', label: 'filter', run: () => field.current?.focus() },
    {
      keys: 'z',
      label: 'density',
      run: () => (density.value = density.value === 'compact' ? 'comfortable' : 'compact'),
    },
  ]);
  const filter = (q: string): void => setQuery({ q });
  return (
    <main class="list-page">
      <h1 class="unseen">Processes</h1>
      <div class="bar">
        <input
          type="search"
          ref={field}
          value={text}
          placeholder="Filter: words, owner:cli, label:chat=7, is:failed, -word"
          aria-label="Filter"
          onInput={({ currentTarget }) => filter(currentTarget.value)}
          onKeyDown={({ key, currentTarget }) => {
            if (key !== 'Escape' && key !== 'Enter') return;
            currentTarget.blur();
            if (key === 'Enter') move(0);
          }}
        />
        <span class="chips">
          {CHIPS.map(([q, title]) => (
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
        <span class="stretch" />
        <span class="muted" role="status">
          {rows.length === all.length
            ? `${countText(all.length)} processes`
            : `${countText(rows.length)} of ${countText(all.length)}`}
        </span>
      </div>
      {listProblem.value && (
        <p class="problem" role="alert">
          {listProblem.value.message} {listProblem.value.remedy}
        </p>
      )}
      {all.length === 0 && listLoaded.value ? (
        <Empty />
      ) : rows.length === 0 && listLoaded.value ? (
        <p class="nothing">
          Nothing matches <code>{text}</code>; it hides {countText(all.length)} processes.{' '}
          <button type="button" onClick={() => filter('')}>
            Show all
          </button>
        </p>
      ) : (
        <ProcessList rows={rows} chosen={chosen.value} choose={(key) => (chosen.value = key)} />
      )}
    </main>
  );
}

function Empty() {
  return (
    <div class="nothing">
      <h2>Nothing has been started yet</h2>
      <p class="muted">Run something, and it appears here:</p>
      <Snippet text="holdfast run --background --name hello 'for i in 1 2 3 4 5; do echo $i; sleep 1; done'" />
      <p class="muted">Or let an agent do it:</p>
      <Snippet text="holdfast mcp --print-config claude-code | sh" />
    </div>
  );
}
