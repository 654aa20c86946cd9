// All processes, live. The filter is in the address, so a view can be kept as a bookmark.

import { useSignal } from '@preact/signals';
import { useMemo, useRef } from 'preact/hooks';
import { useKeys } from '../core/keyboard.ts';
import { needOf, needs, needsFirst } from '../core/needs.ts';
import { pinnedFirst, pins } from '../core/pins.ts';
import { listLoaded, listProblem, processes } from '../core/processes.ts';
import { go, place, setQuery } from '../core/route.ts';
import { density } from '../core/settings.ts';
import { parseFilter } from '../model/filter.ts';
import { flatRows, groupedRows } from '../model/groups.ts';
import { countText } from '../model/words.ts';
import { FilterBar } from '../parts/filter-bar.tsx';
import { ProcessList, processLink, rowKey } from '../parts/process-list.tsx';
import { Snippet } from '../parts/snippet.tsx';
import { toggled, useSelection } from './use-selection.ts';
import { SelectionBar } from '../acts/selection-bar.tsx';

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
  const folded = useSignal<ReadonlySet<string>>(new Set());
  const text = place.value.query.get('q') ?? '';
  const all = processes.value;
  const isGrouped = place.value.query.get('group') === 'owner';
  const needed = needs.value;
  const found = useMemo(
    () => needsFirst(pinnedFirst(all.filter(parseFilter(text)))),
    [all, text, needed, pins.value],
  );
  const rows = useMemo(
    () => (isGrouped ? groupedRows(found, folded.value, needOf) : flatRows(found)),
    [found, isGrouped, folded.value],
  );
  const at = rows.findIndex((each) => rowKey(each) === chosen.value);
  const row = rows[at]?.process;
  const group = rows[at]?.group;
  const fold = (key: string): void => {
    folded.value = toggled(folded.value, key);
  };
  const selection = useSelection({ all, found, chosen: rows[at] });
  const show = (query: { readonly q?: string; readonly group?: string }): void =>
    setQuery({ q: text, group: isGrouped ? 'owner' : '', ...query });
  const open = (): void => {
    if (group) fold(group.key);
    else if (row) go(processLink(row));
  };
  const move = (to: number): void => {
    const target = rows[Math.max(0, Math.min(rows.length - 1, to))];
    if (target) chosen.value = rowKey(target);
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
    { keys: 'Enter', label: 'open', run: open },
    { keys: 'h', run: () => group?.isFolded === false && fold(group.key) },
    { keys: 'l', run: () => group?.isFolded === true && fold(group.key) },
    { keys: 'o', label: 'by owner', run: () => show({ group: isGrouped ? '' : 'owner' }) },
    { keys: '/', label: 'filter', run: () => field.current?.focus() },
    {
      keys: 'z',
      label: 'density',
      run: () => (density.value = density.value === 'compact' ? 'comfortable' : 'compact'),
    },
  ]);
  const filter = (q: string): void => show({ q });
  return (
    <main class="list-page">
      <h1 class="unseen">Processes</h1>
      <FilterBar
        field={field}
        text={text}
        chips={CHIPS}
        filter={filter}
        entered={() => move(0)}
        says={countWords(found.length, all.length)}
      >
        <GroupChip isOn={isGrouped} toggle={() => show({ group: isGrouped ? '' : 'owner' })} />
      </FilterBar>
      {selection.processes.length > 0 && <SelectionBar {...selection} />}
      <ListProblem />
      {found.length === 0 && listLoaded.value ? (
        <NothingFound text={text} hides={all.length} showAll={() => filter('')} />
      ) : (
        <ProcessList
          rows={rows}
          chosen={chosen.value}
          choose={(key) => (chosen.value = key)}
          selected={selection.keys}
          fold={fold}
        />
      )}
    </main>
  );
}

function countWords(shown: number, all: number): string {
  return shown === all ? `${countText(all)} processes` : `${countText(shown)} of ${countText(all)}`;
}

function ListProblem() {
  const problem = listProblem.value;
  if (!problem) return null;
  return (
    <p class="problem" role="alert">
      {problem.message} {problem.remedy}
    </p>
  );
}

function GroupChip({ isOn, toggle }: { readonly isOn: boolean; readonly toggle: () => void }) {
  return (
    <button type="button" class="chip" aria-pressed={isOn} onClick={toggle}>
      by owner
    </button>
  );
}

interface NothingProps {
  readonly text: string;
  /** How many processes the filter hides. */
  readonly hides: number;
  readonly showAll: () => void;
}

function NothingFound({ text, hides, showAll }: NothingProps) {
  if (hides === 0) return <Empty />;
  return (
    <p class="nothing">
      Nothing matches <code>{text}</code>; it hides {countText(hides)} processes.{' '}
      <button type="button" onClick={showAll}>
        Show all
      </button>
    </p>
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
