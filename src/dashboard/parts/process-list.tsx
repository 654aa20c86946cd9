// The list of processes: only the rows in view are in the document, so ten thousand cost as much as thirty.

import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { ProcessInfo } from '../../protocol/process.ts';
import { needOf } from '../core/needs.ts';
import { nowMs } from '../core/now.ts';
import { pinOf } from '../core/pins.ts';
import { keyOf } from '../core/processes.ts';
import { linkTo } from '../core/route.ts';
import { density } from '../core/settings.ts';
import type { GroupRow, ListRow } from '../model/groups.ts';
import { needWords, stateWords } from '../model/state-words.ts';
import { bytesText, dateText, durationText, visibleText } from '../model/words.ts';
import { useHeight } from './use-height.ts';

const ROW_PX = { compact: 22, comfortable: 28 } as const;
/** On a phone a row has two lines. */
const NARROW_ROW_PX = 48;
const NARROW = matchMedia('(max-width: 720px)');
const BEYOND = 8;

interface Props {
  readonly rows: readonly ListRow[];
  /** The key of the chosen row. */
  readonly chosen: string | undefined;
  readonly choose: (key: string) => void;
  /** The keys of the selected rows. */
  readonly selected: ReadonlySet<string>;
  /** Folds or unfolds a group. */
  readonly fold: (key: string) => void;
}

/** Of a process or of a group. */
export function rowKey({ process, group }: ListRow): string {
  return group ? `group ${group.key}` : keyOf(process);
}

export function ProcessList({ rows, chosen, choose, selected, fold }: Props) {
  const view = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const height = useHeight(view);
  const rowPx = NARROW.matches ? NARROW_ROW_PX : ROW_PX[density.value];
  const at = rows.findIndex((row) => rowKey(row) === chosen);
  useEffect(() => {
    const element = view.current;
    if (!element || at < 0) return;
    const [first, last] = [at * rowPx, (at + 1) * rowPx];
    if (first < element.scrollTop) element.scrollTop = first;
    else if (last > element.scrollTop + element.clientHeight)
      element.scrollTop = last - element.clientHeight;
  }, [at, rowPx]);
  const first = Math.max(0, Math.floor(top.value / rowPx) - BEYOND);
  const last = Math.min(rows.length, Math.ceil((top.value + height.value) / rowPx) + BEYOND);
  return (
    <div class="list" role="grid" aria-label="Processes" aria-rowcount={rows.length + 1}>
      <div role="rowgroup">
        <div class="list-head row" role="row" aria-rowindex={1}>
          {['state', 'command', 'owner', 'since', 'output', 'last output'].map((title) => (
            <span key={title} role="columnheader">
              {title}
            </span>
          ))}
        </div>
      </div>
      <div
        class="list-view"
        role="rowgroup"
        ref={view}
        tabIndex={0}
        onScroll={({ currentTarget }) => (top.value = currentTarget.scrollTop)}
      >
        <div class="list-space" role="none" style={{ height: `${rows.length * rowPx}px` }}>
          {rows.slice(first, last).map((row, index) => {
            const place = {
              index: first + index,
              y: (first + index) * rowPx,
              isChosen: rowKey(row) === chosen,
              choose,
            };
            return row.group ? (
              <GroupLine key={rowKey(row)} group={row.group} fold={fold} {...place} />
            ) : (
              <ProcessRow
                key={rowKey(row)}
                row={row.process}
                isNested={row.isNested}
                isSelected={selected.has(rowKey(row))}
                {...place}
              />
            );
          })}
        </div>
      </div>
    </div>
  );
}

interface Place {
  readonly index: number;
  readonly y: number;
  readonly isChosen: boolean;
  readonly choose: (key: string) => void;
}

function GroupLine({
  group,
  fold,
  index,
  y,
  isChosen,
  choose,
}: Place & { readonly group: GroupRow; readonly fold: (key: string) => void }) {
  const { owner, chat, needing, running, failed, ended, isFolded } = group;
  return (
    <div
      class="row group"
      role="row"
      aria-rowindex={index + 2}
      aria-selected={isChosen}
      style={{ transform: `translateY(${y}px)` }}
      onPointerDown={() => choose(`group ${group.key}`)}
    >
      <span role="gridcell" class="group-words cut">
        <button
          type="button"
          class="quiet"
          tabIndex={-1}
          aria-expanded={!isFolded}
          onClick={() => fold(group.key)}
        >
          {isFolded ? '▸' : '▾'} <b>{visibleText(owner)}</b>
          {chat !== undefined && ` / chat ${visibleText(chat)}`}
        </button>
        <span class="muted">
          {needing > 0 && (
            <span class="warn">
              ‼ {needing} {needing === 1 ? 'needs' : 'need'} you ·{' '}
            </span>
          )}
          {running} running
          {failed > 0 && <span class="bad"> · {failed} failed</span>}
          {ended - failed > 0 && ` · ${ended - failed} ended`}
        </span>
      </span>
    </div>
  );
}

interface RowProps extends Place {
  readonly row: ProcessInfo;
  readonly isNested: boolean;
  readonly isSelected: boolean;
}

function ProcessRow({ row, isNested, isSelected, index, y, isChosen, choose }: RowProps) {
  const need = needOf(row);
  const { glyph, word, tone } = need ? needWords(need) : stateWords(row);
  const { outcome, startedAtMs, exitedAtMs, durationMs, lastOutputAtMs } = row;
  const now = nowMs.value;
  const since = outcome ? now - (exitedAtMs ?? startedAtMs + durationMs) : now - startedAtMs;
  const pin = pinOf(row);
  const name = row.name === undefined ? '' : `${visibleText(row.name)}  `;
  return (
    <div
      class={`row${isNested ? ' nested' : ''}${need ? ' needs' : ''}`}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={isChosen}
      style={{ transform: `translateY(${y}px)` }}
      onPointerDown={() => choose(keyOf(row))}
    >
      <span role="gridcell" class={`state ${tone} cut`}>
        <span aria-hidden="true">{glyph}</span> {word}
      </span>
      <span role="gridcell" class="command cut">
        <a href={processLink(row)} tabIndex={-1}>
          {isSelected && <span class="accent">☑ </span>}
          {pin > 0 && (
            <kbd class="pin" title={`Pinned: the key ${pin} opens it`}>
              {pin}
            </kbd>
          )}
          {name !== '' && <b>{name}</b>}
          {need && need.text !== '' && <span class="warn said">{visibleText(need.text)} </span>}
          <code>{visibleText(row.command)}</code>
        </a>
      </span>
      <span role="gridcell" class="owner cut muted">
        {visibleText(row.owner)}
      </span>
      <span role="gridcell" class="since muted" title={dateText(startedAtMs)}>
        {durationText(since)}
        {outcome ? ' ago' : ''}
      </span>
      <span role="gridcell" class="size muted">
        {bytesText(row.bytes.total)}
      </span>
      <span role="gridcell" class="last muted">
        {lastOutputAtMs === undefined ? '–' : agoText(now - lastOutputAtMs)}
      </span>
    </div>
  );
}

function agoText(ms: number): string {
  return ms < 2000 ? 'now' : `${durationText(ms)} ago`;
}

export function processLink({ owner, id }: Pick<ProcessInfo, 'owner' | 'id'>): string {
  return linkTo(['p', owner, id]);
}
