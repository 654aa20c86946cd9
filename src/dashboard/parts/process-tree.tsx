// The living processes of a start, looked at every two seconds while they are shown.

import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Results } from '../../protocol/host-api.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { ask } from '../core/http.ts';
import { treeRows, type Look, type TreeRow } from '../model/tree.ts';
import { bytesText, countText, durationText, visibleText } from '../model/words.ts';

const LOOK_MS = 2000;
const INDENT_PX = 14;

interface Looks {
  readonly now: Look;
  readonly before?: Look;
}

export function ProcessTree({ process: { owner, id, pid } }: { readonly process: ProcessInfo }) {
  const looks = useSignal<Looks | undefined>(undefined);
  useEffect(() => {
    const look = (): void => {
      const path = `/v1/processes/${encodeURIComponent(id)}/tree`;
      ask<Results['tree']>('GET', path, { query: { owner } }).then(
        (found) => {
          const now = { ...found, atMs: performance.now() };
          looks.value = looks.value ? { now, before: looks.value.now } : { now };
        },
        // The header says when the server cannot be reached.
        () => undefined,
      );
    };
    look();
    const timer = setInterval(look, LOOK_MS);
    return () => clearInterval(timer);
  }, [owner, id]);
  if (!looks.value) return null;
  const { now, before } = looks.value;
  const rows = treeRows(now, before);
  if (rows.length === 0) return null;
  const total = (of: (row: TreeRow) => number): number =>
    rows.reduce((all, row) => all + of(row), 0);
  return (
    <section aria-labelledby="tree">
      <h2 id="tree">
        Living processes: {countText(now.total)}
        <span class="muted">
          {before && ` · ${percent(total(({ share = 0 }) => share))} of a core`} ·{' '}
          {bytesText(total(({ memoryBytes }) => memoryBytes))} resident
        </span>
      </h2>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="What each uses">
        <table class="tree">
          <thead>
            <tr>
              <th scope="col">command</th>
              <th scope="col" class="number">
                pid
              </th>
              <th scope="col" class="number">
                core
              </th>
              <th scope="col" class="number">
                processor time
              </th>
              <th scope="col" class="number">
                memory
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <Member key={row.pid} row={row} isRoot={row.pid === pid} />
            ))}
          </tbody>
        </table>
      </div>
      {now.total > rows.length && (
        <p class="muted">{countText(now.total - rows.length)} more are not listed.</p>
      )}
    </section>
  );
}

function Member({ row, isRoot }: { readonly row: TreeRow; readonly isRoot: boolean }) {
  const { depth, pid, command, share, cpuMs, memoryBytes } = row;
  return (
    <tr>
      <td class="cut" style={{ paddingLeft: `${depth * INDENT_PX}px` }}>
        <code>{visibleText(command)}</code>
        {isRoot && <span class="tag">root</span>}
      </td>
      <td class="number">{pid}</td>
      <td class="number">{share === undefined ? '' : percent(share)}</td>
      <td class="number">{durationText(cpuMs)}</td>
      <td class="number">{bytesText(memoryBytes)}</td>
    </tr>
  );
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
