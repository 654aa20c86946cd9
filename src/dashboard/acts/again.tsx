// Starting an ended process once more, in the same directory, with the same arguments.

import { signal } from '@preact/signals';
import type { ProcessInfo } from '../../protocol/process.ts';
import { ask, Problem } from '../core/http.ts';
import { go, linkTo } from '../core/route.ts';
import { isShare } from '../core/token.ts';
import { visibleText } from '../model/words.ts';
import { Dialog } from '../parts/dialog.tsx';

interface Asking {
  readonly process: ProcessInfo;
  readonly problem?: Problem;
}

const asking = signal<Asking | undefined>(undefined);

/** What held it is not known in full afterwards: what was confined is not started without. */
export function canRunAgain({ outcome, confinement, archived }: ProcessInfo): boolean {
  return outcome !== undefined && !confinement && archived !== true && !isShare.value;
}

export function askToRunAgain(process: ProcessInfo): void {
  asking.value = { process };
}

export function AgainDialog() {
  const now = asking.value;
  if (!now) return null;
  const { process, problem } = now;
  const close = (): void => {
    asking.value = undefined;
  };
  return (
    <Dialog title="Run this again?" close={close}>
      <p>
        <code>{visibleText(process.command)}</code>
      </p>
      <p class="muted">
        In {visibleText(process.cwd)}, for {visibleText(process.owner)}, with the environment of the
        host: variables that were set for this start are never stored. No timeout and no lease.
      </p>
      {problem && (
        <p class="problem" role="alert">
          {problem.message} {problem.remedy}
        </p>
      )}
      <p class="actions">
        <button type="button" onClick={close}>
          Cancel
        </button>
        <button type="button" autoFocus onClick={() => void runAgain(process)}>
          Run again
        </button>
      </p>
    </Dialog>
  );
}

async function runAgain({ owner, id }: ProcessInfo): Promise<void> {
  const query = { owner };
  try {
    // Long arguments are cut in the list.
    const { argv, cwd, labels, streams, size, stdin } = await ask<ProcessInfo>(
      'GET',
      `/v1/processes/${encodeURIComponent(id)}`,
      { query },
    );
    const same = { argv, cwd, ...(labels && { labels }) };
    const { process } = await ask<{ process: ProcessInfo }>(
      'POST',
      streams === 'pty' ? '/v1/terminals' : '/v1/processes',
      { query, body: streams === 'pty' ? { ...same, size } : { ...same, streams, stdin } },
    );
    asking.value = undefined;
    go(linkTo(['p', process.owner, process.id]));
  } catch (error) {
    if (asking.value) asking.value = { ...asking.value, problem: error as Problem };
  }
}
