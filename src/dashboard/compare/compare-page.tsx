// Two runs beside each other: how each ended, how long it took, and the first line that is not the same.

import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { ProcessInfo } from '../../protocol/process.ts';
import { Problem } from '../core/http.ts';
import { useKeys } from '../core/keyboard.ts';
import { listLoaded, processOf } from '../core/processes.ts';
import { go, linkTo, place } from '../core/route.ts';
import { stateWords } from '../model/state-words.ts';
import { bytesText, countText, dateText, durationText, visibleText } from '../model/words.ts';
import { processLink } from '../parts/process-list.tsx';
import { compareLogs, type LogDifference } from './compare-logs.ts';
import type { DiffRow } from './line-diff.ts';

export function ComparePage() {
  const [, owner = '', id = '', otherOwner = '', otherId = ''] = place.value.parts;
  const left = processOf(owner, id);
  const right = processOf(otherOwner, otherId);
  useKeys([{ keys: 'Escape', label: 'back', run: () => go(linkTo([])) }]);
  return (
    <main class="compare" tabIndex={0}>
      <h1>Compare two runs</h1>
      {left && right ? (
        <>
          <Facts left={left} right={right} />
          <Logs key={`${left.id} ${right.id}`} left={left} right={right} />
        </>
      ) : (
        <p class="muted">
          {listLoaded.value ? 'One of the two processes is not stored any more.' : 'Loading …'}
        </p>
      )}
    </main>
  );
}

interface Two {
  readonly left: ProcessInfo;
  readonly right: ProcessInfo;
}

function Facts({ left, right }: Two) {
  const rows: [string, (process: ProcessInfo) => string][] = [
    ['state', (process) => stateWords(process).word],
    ['took', ({ durationMs }) => durationText(durationMs)],
    ['output', ({ bytes }) => bytesText(bytes.total)],
    ['processor', ({ usage }) => (usage ? durationText(usage.userMs + usage.systemMs) : '–')],
    [
      'peak memory',
      ({ usage }) =>
        usage?.peakMemoryBytes === undefined ? '–' : bytesText(usage.peakMemoryBytes),
    ],
    ['started', ({ startedAtMs }) => dateText(startedAtMs)],
    ['command', ({ command }) => visibleText(command)],
    ['directory', ({ cwd }) => visibleText(cwd)],
  ];
  return (
    <table>
      <thead>
        <tr>
          <td />
          {[left, right].map((process, index) => (
            <th key={index} scope="col">
              <a href={processLink(process)}>
                {visibleText(process.name ?? process.id.slice(0, 8))}
              </a>
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(([title, text]) => {
          const [one, other] = [text(left), text(right)];
          return (
            <tr key={title}>
              <th scope="row">{title}</th>
              <td>{one}</td>
              <td class={one === other ? '' : 'differs'}>{other}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function Logs({ left, right }: Two) {
  const found = useSignal<LogDifference | undefined>(undefined);
  const problem = useSignal<Problem | undefined>(undefined);
  const read = useSignal(0);
  useEffect(() => {
    const stop = new AbortController();
    compareLogs(left, right, (same) => (read.value = same), stop.signal).then(
      (difference) => {
        found.value = difference;
      },
      (error: unknown) => {
        if (!stop.signal.aborted) problem.value = error as Problem;
      },
    );
    return () => stop.abort();
  }, []);
  if (problem.value)
    return (
      <p class="problem" role="alert">
        {problem.value.message} {problem.value.remedy}
      </p>
    );
  const { value } = found;
  if (!value) return <p role="status">Comparing … {countText(read.value)} lines are the same.</p>;
  if (value.isSame)
    return (
      <p role="status" class="good">
        ✓ Both printed the same {countText(value.same)} lines.
      </p>
    );
  return (
    <>
      <p role="status">
        The first {countText(value.same)} lines are the same; line {countText(value.same + 1)}{' '}
        differs.
      </p>
      <div class="diff">
        {value.rows.map((row, index) => (
          <Pair key={index} row={row} />
        ))}
      </div>
      {value.goesOn && <p class="muted">Both go on; what follows is not compared.</p>}
    </>
  );
}

function Pair({ row: { left, right, isSame } }: { readonly row: DiffRow }) {
  const look = (text: string | undefined, changed: string): string =>
    text === undefined ? 'none' : isSame ? '' : changed;
  return (
    <>
      <div class={look(left, 'gone')}>{left}</div>
      <div class={look(right, 'come')}>{right}</div>
    </>
  );
}
