// The wall: everything that runs, as small live pictures. Only tiles in view are followed.

import { useSignal } from '@preact/signals';
import { useMemo, useRef } from 'preact/hooks';
import { useKeys } from '../core/keyboard.ts';
import { needs, needsFirst } from '../core/needs.ts';
import { keyOf, listLoaded, processes } from '../core/processes.ts';
import { go, place, setQuery } from '../core/route.ts';
import { density } from '../core/settings.ts';
import { parseFilter } from '../model/filter.ts';
import { countText } from '../model/words.ts';
import { FilterBar } from '../parts/filter-bar.tsx';
import { processLink } from '../parts/process-list.tsx';
import { Tile } from './tile.tsx';

/** More tiles at a time cost more than a person can watch. */
const STEP = 48;
const FEW = 24;

const CHIPS: readonly [string, string][] = [
  ['is:running', 'running'],
  ['is:terminal', 'terminals'],
  ['is:failed', 'failed'],
];

export function WallPage() {
  const field = useRef<HTMLInputElement>(null);
  const grid = useRef<HTMLDivElement>(null);
  const most = useSignal(STEP);
  const chosen = useSignal(-1);
  const text = place.value.query.get('q') ?? 'is:running';
  const all = processes.value;
  const needed = needs.value;
  const rows = useMemo(() => needsFirst(all.filter(parseFilter(text))), [all, text, needed]);
  const shown = rows.slice(0, most.value);
  const move = (by: number): void => {
    chosen.value = Math.max(0, Math.min(shown.length - 1, chosen.value + by));
  };
  const columns = (): number => {
    const style = grid.current ? getComputedStyle(grid.current).gridTemplateColumns : '';
    return Math.max(1, style.split(' ').length);
  };
  const row = shown[chosen.value];
  useKeys([
    { keys: 'l', label: 'right', run: () => move(1) },
    { keys: 'h', label: 'left', run: () => move(-1) },
    { keys: 'j', label: 'down', run: () => move(chosen.value < 0 ? 1 : columns()) },
    { keys: 'k', label: 'up', run: () => move(-columns()) },
    { keys: 'ArrowRight', run: () => move(1) },
    { keys: 'ArrowLeft', run: () => move(-1) },
    { keys: 'ArrowDown', run: () => move(chosen.value < 0 ? 1 : columns()) },
    { keys: 'ArrowUp', run: () => move(-columns()) },
    { keys: 'Enter', label: 'open', run: () => row && go(processLink(row)) },
    { keys: '/', label: 'filter', run: () => field.current?.focus() },
    {
      keys: 'z',
      label: 'size',
      run: () => (density.value = density.value === 'compact' ? 'comfortable' : 'compact'),
    },
  ]);
  return (
    <main class="list-page">
      <h1 class="unseen">Wall</h1>
      <FilterBar
        field={field}
        text={text}
        chips={CHIPS}
        filter={(q) => setQuery({ q: q === '' ? ' ' : q })}
        entered={() => (chosen.value = 0)}
        says={
          rows.length === all.length
            ? countText(all.length)
            : `${countText(rows.length)} of ${countText(all.length)}`
        }
      />
      {rows.length === 0 && listLoaded.value && (
        <p class="nothing">
          Nothing to show: the filter <code>{text}</code> hides {countText(all.length)} processes.
        </p>
      )}
      <div class="wall-view" tabIndex={0} role="region" aria-label="Tiles">
        <div class="wall" ref={grid}>
          {shown.map((process, index) => (
            <Tile
              key={keyOf(process)}
              process={process}
              hz={shown.length <= FEW ? 4 : 1}
              isChosen={index === chosen.value}
            />
          ))}
        </div>
        {rows.length > shown.length && (
          <p class="more">
            <button type="button" onClick={() => (most.value += STEP)}>
              Show {countText(Math.min(STEP, rows.length - shown.length))} more
            </button>
          </p>
        )}
      </div>
    </main>
  );
}
