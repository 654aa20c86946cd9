// Sharing a process: a link that shows it for a while and changes nothing.

import { signal } from '@preact/signals';
import type { ProcessInfo } from '../../protocol/process.ts';
import { ask, Problem } from '../core/http.ts';
import { dateText, visibleText } from '../model/words.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Snippet } from '../parts/snippet.tsx';

interface Sharing {
  readonly process: ProcessInfo;
  readonly link?: string;
  readonly expiresAtMs?: number;
  readonly problem?: Problem;
}

const sharing = signal<Sharing | undefined>(undefined);
const HOUR_MS = 3_600_000;
const TIMES: readonly [string, number][] = [
  ['15 minutes', HOUR_MS / 4],
  ['1 hour', HOUR_MS],
  ['1 day', 24 * HOUR_MS],
];

export function askToShare(process: ProcessInfo): void {
  sharing.value = { process };
}

export function ShareDialog() {
  const now = sharing.value;
  if (!now) return null;
  const { process, link, expiresAtMs = 0, problem } = now;
  const close = (): void => {
    sharing.value = undefined;
  };
  return (
    <Dialog title="Share this process" close={close}>
      <p class="cut">
        <code>{visibleText(process.command)}</code>
      </p>
      {problem && (
        <p class="problem" role="alert">
          {problem.message} {problem.remedy}
        </p>
      )}
      {link === undefined ? (
        <p class="muted">
          Anyone with the link sees this process, live, and nothing else. It ends by itself, or on
          the page Host.
        </p>
      ) : (
        <>
          <Snippet text={link} />
          <p class="muted">It works until {dateText(expiresAtMs)}.</p>
        </>
      )}
      <p class="actions">
        {link === undefined &&
          TIMES.map(([title, ms], index) => (
            <button
              key={title}
              type="button"
              autoFocus={index === 1}
              onClick={() => void share(process, ms)}
            >
              For {title}
            </button>
          ))}
        <button type="button" onClick={close}>
          {link === undefined ? 'Cancel' : 'Close'}
        </button>
      </p>
    </Dialog>
  );
}

async function share(process: ProcessInfo, forMs: number): Promise<void> {
  const { owner, id } = process;
  try {
    const path = `/v1/processes/${encodeURIComponent(id)}/share`;
    const { token, session } = await ask<{ token: string; session: { expiresAtMs: number } }>(
      'POST',
      path,
      { query: { owner }, body: { forMs } },
    );
    const place = `/p/${encodeURIComponent(owner)}/${encodeURIComponent(id)}`;
    const link = `${location.origin}/#share=${token}${place}`;
    sharing.value = { process, link, expiresAtMs: session.expiresAtMs };
  } catch (error) {
    sharing.value = { process, problem: error as Problem };
  }
}
