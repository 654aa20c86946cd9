// The time line under a screen: how much was printed when, runs, marks and keyboards; drag it to see any moment.

import type { ReadonlySignal } from '@preact/signals';
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { TimeMark, TimePoint } from '../../protocol/dashboard/timeline.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { ask } from '../core/http.ts';
import { useKeys } from '../core/keyboard.ts';
import { nowMs } from '../core/now.ts';
import { isDark } from '../core/settings.ts';
import { clockText, countText, durationText } from '../model/words.ts';
import { Play, usePlayer } from './play.tsx';
import type { Course } from './course.ts';
import { paintCourse } from './course-painter.ts';
import type { Screen } from './screen.ts';

interface Props {
  readonly course: ReadonlySignal<Course | undefined>;
  readonly screen: Screen;
  readonly process: ProcessInfo;
}

const STEPS = 1000;
const SECOND = 1000;
const STOPS: ReadonlySet<string> = new Set(['run', 'mark']);

export function TimeLine({ course, screen, process }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const shown = useSignal<TimePoint | undefined>(undefined);
  const wanted = useRef(0);
  const from = process.startedAtMs;
  const to = process.outcome ? from + process.durationMs : nowMs.value;
  const span = Math.max(1, to - from);
  const dark = isDark();
  const known = course.value;
  useEffect(() => {
    if (canvas.current && known) paintCourse(canvas.current, known, { from, to: from + span });
  }, [known, dark]);
  useEffect(() => {
    if (screen.past.value === undefined) shown.value = undefined;
  }, [screen.past.value]);
  const path = `/v1/processes/${encodeURIComponent(process.id)}/at`;
  const showPoint = (point: TimePoint): void => {
    shown.value = point;
    void screen.showAt(point.seq);
  };
  const showMoment = (ms: number): void => {
    wanted.current += 1;
    const mine = wanted.current;
    const query = { owner: process.owner, ms: Math.round(Math.max(from, ms)) };
    ask<TimePoint>('GET', path, { query }).then(
      (point) => {
        if (mine === wanted.current) showPoint(point);
      },
      // The terminal says what is wrong when the server cannot be reached.
      () => undefined,
    );
  };
  const at = shown.value?.atMs ?? to;
  const byEvent = (by: number): void => {
    const seq = Math.max(1, Math.min(process.seq, (shown.value?.seq ?? process.seq) + by));
    showPoint({ seq, offset: 0, atMs: at });
  };
  const byMark = (isWanted: (mark: TimeMark) => boolean, last: boolean): void => {
    const marks = (known?.marks ?? []).filter((mark) => STOPS.has(mark.kind) && isWanted(mark));
    const mark = last ? marks.at(-1) : marks[0];
    if (mark) showPoint(mark);
  };
  const seq = shown.value?.seq ?? Infinity;
  useKeys([
    { keys: '[', label: 'run before', run: () => byMark((mark) => mark.seq < seq, true) },
    { keys: ']', label: 'next run', run: () => byMark((mark) => mark.seq > seq, false) },
    { keys: ',', label: 'event before', run: () => byEvent(-1) },
    { keys: '.', run: () => byEvent(1) },
    { keys: 'ArrowLeft', label: '5 s back', run: () => showMoment(at - 5 * SECOND) },
    { keys: 'ArrowRight', run: () => showMoment(at + 5 * SECOND) },
    ...Array.from({ length: 10 }, (_each, tenth) => ({
      keys: String(tenth),
      run: () => showMoment(from + (span * tenth) / 10),
    })),
    { keys: 'L', label: 'live', run: () => screen.toLive() },
  ]);
  const isPast = screen.past.value !== undefined;
  const player = usePlayer({
    at: isPast ? at : from,
    to,
    isPast,
    show: showMoment,
    live: () => screen.toLive(),
  });
  return (
    <div class={isPast ? 'time-line past' : 'time-line'}>
      <div class="time-track">
        <canvas ref={canvas} aria-hidden="true" />
        <input
          type="range"
          min={0}
          max={STEPS}
          value={isPast ? Math.round(((at - from) / span) * STEPS) : STEPS}
          aria-label="Moment"
          aria-valuetext={clockText(at)}
          onInput={({ currentTarget }) =>
            showMoment(from + (span * Number(currentTarget.value)) / STEPS)
          }
        />
      </div>
      <Play player={player} />
      <Moment process={process} atMs={at} seq={screen.past.value} />
      <button type="button" disabled={!isPast} onClick={() => screen.toLive()}>
        {process.outcome ? 'To the end' : 'Live'}
      </button>
    </div>
  );
}

interface MomentProps {
  readonly process: ProcessInfo;
  readonly atMs: number;
  /** The event that is shown; undefined for the present. */
  readonly seq: number | undefined;
}

function Moment({ process, atMs, seq }: MomentProps) {
  return (
    <span class="time-words" role="status">
      {seq === undefined ? (
        <span class="muted">
          {process.outcome ? 'the end' : 'live'} · event {countText(process.seq)}
        </span>
      ) : (
        <>
          <b class="warn">{clockText(atMs)}</b>, {durationText(nowMs.value - atMs)} ago · event{' '}
          {countText(seq)}
        </>
      )}
    </span>
  );
}
