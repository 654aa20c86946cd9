// Stopping many processes at once: the number of them is typed first, and what did not end is named.

import { signal, useSignal } from '@preact/signals';
import type { ProcessInfo } from '../../protocol/process.ts';
import { Problem } from '../core/http.ts';
import { countText, visibleText } from '../model/words.ts';
import { Dialog } from '../parts/dialog.tsx';
import { stopProcess } from './stop.tsx';

interface StoppingMany {
  readonly processes: readonly ProcessInfo[];
  readonly isBegun: boolean;
  readonly done: number;
  /** What still lives, or was not reached. */
  readonly left: readonly string[];
}

const IN_FLIGHT = 8;
const stopping = signal<StoppingMany | undefined>(undefined);

/** Of these, the ones that run. */
export function askToStopMany(processes: readonly ProcessInfo[]): void {
  const running = processes.filter(({ outcome }) => !outcome);
  if (running.length > 0)
    stopping.value = { processes: running, isBegun: false, done: 0, left: [] };
}

export function StopManyDialog() {
  const now = stopping.value;
  if (!now) return null;
  const close = (): void => {
    stopping.value = undefined;
  };
  const title = now.isBegun ? 'Stopping' : `Stop ${countText(now.processes.length)} processes?`;
  return (
    <Dialog title={title} close={close}>
      {now.isBegun ? <Progress {...now} close={close} /> : <Question {...now} close={close} />}
    </Dialog>
  );
}

type PartProps = StoppingMany & { readonly close: () => void };

function Question({ processes, close }: PartProps) {
  const typed = useSignal('');
  const isMeant = typed.value.trim() === String(processes.length);
  const begin = (): void => {
    if (isMeant) void stopAll(processes);
  };
  return (
    <>
      <p class="muted">
        Each and all its descendants get SIGTERM, and SIGKILL when the grace period is over.
      </p>
      <label class="choice">
        Type {processes.length} to stop them
        <input
          autoFocus
          inputMode="numeric"
          value={typed.value}
          onInput={({ currentTarget }) => (typed.value = currentTarget.value)}
          onKeyDown={({ key }) => key === 'Enter' && begin()}
        />
      </label>
      <p class="actions">
        <button type="button" onClick={close}>
          Keep them
        </button>
        <button type="button" class="danger" disabled={!isMeant} onClick={begin}>
          Stop all
        </button>
      </p>
    </>
  );
}

function Progress({ processes, done, left, close }: PartProps) {
  const isOver = done === processes.length;
  return (
    <>
      <p role="status">
        {countText(done)} of {countText(processes.length)} stopped.{' '}
        {isOver && left.length === 0 && <span class="good">✓ Nothing is left.</span>}
      </p>
      {left.length > 0 && (
        <ul class="bad">
          {left.map((text) => (
            <li key={text}>{visibleText(text)}</li>
          ))}
        </ul>
      )}
      <p class="actions">
        <button type="button" onClick={close}>
          Close
        </button>
      </p>
    </>
  );
}

async function stopAll(processes: readonly ProcessInfo[]): Promise<void> {
  stopping.value = { processes, isBegun: true, done: 0, left: [] };
  const waiting = processes.values();
  const work = async (): Promise<void> => {
    for (const process of waiting) {
      const left = await stopProcess(process).then(
        ({ survivors }) => survivors.map(({ pid, command }) => `${pid} ${command}`),
        ({ message, remedy }: Problem) => [`${process.command}: ${message} ${remedy}`],
      );
      const now = stopping.value;
      if (now) stopping.value = { ...now, done: now.done + 1, left: [...now.left, ...left] };
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, work));
}
