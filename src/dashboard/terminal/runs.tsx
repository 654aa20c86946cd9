// The commands that were typed at a shell, as blocks: how each ended, how long it took, the way to its screen and output.

import type { ReadonlySignal } from '@preact/signals';
import type { TerminalRunInfo } from '../../protocol/dashboard/timeline.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { linkTo } from '../core/route.ts';
import { dateText, durationText, visibleText } from '../model/words.ts';
import type { Course } from './course.ts';

interface Props {
  readonly course: ReadonlySignal<Course | undefined>;
  readonly process: ProcessInfo;
  readonly show: (seq: number) => void;
}

const MOST = 100;

export function Runs({ course, process, show }: Props) {
  const runs = course.value?.runs ?? [];
  if (runs.length === 0) return null;
  return (
    <aside class="runs" aria-label="Runs">
      <h2>Runs</h2>
      <ol>
        {runs
          .slice(-MOST)
          .toReversed()
          .map((run) => (
            <Run key={run.seq} run={run} process={process} show={show} />
          ))}
      </ol>
    </aside>
  );
}

function Run({ run, process, show }: Omit<Props, 'course'> & { readonly run: TerminalRunInfo }) {
  const { command, exitCode, durationMs, endSeq, startedAtMs, outputFrom } = run;
  const isGood = exitCode === 0;
  const [glyph, tone, word] =
    endSeq === undefined
      ? (['●', 'accent', 'runs'] as const)
      : isGood
        ? (['✓', 'good', 'exit 0'] as const)
        : (['✗', 'bad', `exit ${exitCode ?? 'unknown'}`] as const);
  return (
    <li>
      <button
        type="button"
        class="run"
        title={dateText(startedAtMs)}
        onClick={() => show(endSeq ?? run.seq)}
      >
        <span class={tone}>
          <span aria-hidden="true">{glyph}</span>
          <span class="unseen">{word}</span>
        </span>
        <code class="cut">{visibleText(command ?? 'not echoed')}</code>
        <span class="muted">{durationMs === undefined ? '' : durationText(durationMs)}</span>
        {exitCode !== undefined && !isGood && <span class="bad">{exitCode}</span>}
      </button>
      {outputFrom !== undefined && (
        <a href={linkTo(['p', process.owner, process.id, 'log'], { at: String(outputFrom) })}>
          log<span class="unseen"> of {visibleText(command ?? 'this run')}</span>
        </a>
      )}
    </li>
  );
}
