// The log of one process: any place of it, from the first byte to the last. At its end it follows; scrolled up, it stays
// where the reader is, whatever is printed meanwhile.

import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { ProcessInfo } from '../../protocol/process.ts';
import { LogReader } from '../core/log-reader.ts';
import { place } from '../core/route.ts';
import { useKeys } from '../core/keyboard.ts';
import type { LogLine } from '../model/log-window.ts';
import { piecesOf } from '../model/log-text.ts';
import { bytesText } from '../model/words.ts';
import { LogSearch } from './log-search.tsx';
import { useHeight } from './use-height.ts';

const LINE_PX = 18;
const BEYOND = 20;
/** Nearer to an end than this, more is loaded. */
const EDGE_PX = 2000;

export function LogView({ process }: { readonly process: ProcessInfo }) {
  const { owner, id } = process;
  const reader = useMemo(() => new LogReader(owner, id), [owner, id]);
  const view = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const height = useHeight(view);
  const linked = place.value.query.get('at');
  useEffect(() => {
    const offset = linked === null || !/^\d{1,15}$/.test(linked) ? undefined : Number(linked);
    reader.marked = offset;
    return reader.open(offset);
  }, [reader, linked]);
  const lines = reader.lines.value;
  // Lines that came or went above leave the text where it is.
  useLayoutEffect(() => {
    const element = view.current;
    if (!element) return;
    const { follows, shift, target } = reader;
    if (target !== undefined) element.scrollTop = Math.max(0, target * LINE_PX - height.value / 3);
    else if (follows.value) element.scrollTop = element.scrollHeight;
    else if (shift !== 0) element.scrollTop += shift * LINE_PX;
    reader.placed();
    top.value = element.scrollTop;
  }, [lines]);
  const scrolled = (element: HTMLDivElement): void => {
    top.value = element.scrollTop;
    const below = element.scrollHeight - element.scrollTop - element.clientHeight;
    reader.follows.value = below < LINE_PX && reader.atEnd;
    if (element.scrollTop < EDGE_PX) reader.loadBefore();
    if (below < EDGE_PX) reader.loadAfter();
  };
  useKeys([
    { keys: 'G', label: 'end', run: () => reader.toEnd() },
    { keys: 'End', run: () => reader.toEnd() },
    { keys: 'g g', label: 'start', run: () => reader.jump(0) },
    { keys: 'Home', run: () => reader.jump(0) },
    { keys: 'j', run: () => view.current?.scrollBy(0, LINE_PX) },
    { keys: 'k', run: () => view.current?.scrollBy(0, -LINE_PX) },
  ]);
  const first = Math.max(0, Math.floor(top.value / LINE_PX) - BEYOND);
  const last = Math.min(lines.length, Math.ceil((top.value + height.value) / LINE_PX) + BEYOND);
  return (
    <div class="log">
      <LogSearch reader={reader} />
      <div
        class="log-view"
        ref={view}
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label="Output"
        onScroll={({ currentTarget }) => scrolled(currentTarget)}
      >
        {lines.length === 0 && reader.atEnd && (
          <p class="log-nothing">
            {process.outcome ? 'It printed nothing.' : 'It has printed nothing yet.'}
          </p>
        )}
        <div class="log-space" style={{ height: `${lines.length * LINE_PX}px` }}>
          <div class="log-lines" style={{ transform: `translateY(${first * LINE_PX}px)` }}>
            {lines.slice(first, last).map((line) => (
              <Line key={line.offset} line={line} isHit={reader.isHit(line)} />
            ))}
          </div>
        </div>
      </div>
      <Place reader={reader} process={process} />
    </div>
  );
}

function Line({ line, isHit }: { readonly line: LogLine; readonly isHit: boolean }) {
  if (line.missing !== undefined)
    return <div class="line gap">— {bytesText(line.missing)} are no longer stored —</div>;
  return (
    <div class={isHit ? 'line hit' : 'line'}>
      {piecesOf(line.text).map(({ text, look }, index) => (
        <span key={index} class={look}>
          {text}
        </span>
      ))}
    </div>
  );
}

/** Where in the log one is, and the way to any other place. */
function Place({ reader, process }: { readonly reader: LogReader; readonly process: ProcessInfo }) {
  void reader.lines.value;
  const { from, to } = reader.range;
  // The log grows sooner than the row of its process.
  const total = Math.max(process.bytes.total, reader.total.value, to);
  const { problem } = reader;
  return (
    <div class="log-place">
      {problem.value && <span class="bad">{problem.value.message}</span>}
      <span class="muted" role="status">
        {reader.follows.value ? (process.outcome ? 'end' : 'following') : 'stays here'} ·{' '}
        {bytesText(from)} to {bytesText(to)} of {bytesText(total)}
      </span>
      <input
        type="range"
        min={0}
        max={Math.max(1, total)}
        value={reader.follows.value ? total : from}
        aria-label="Place in the output, in bytes"
        onChange={({ currentTarget }) => reader.jump(Number(currentTarget.value))}
      />
      <button type="button" disabled={reader.follows.value} onClick={() => reader.toEnd()}>
        {process.outcome ? 'To the end' : 'Follow'}
      </button>
    </div>
  );
}
