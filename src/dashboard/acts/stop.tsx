// Stopping a process, with the proof: what was signalled, who outlived it, and that nothing is left.

import { signal } from '@preact/signals';
import type { ProcessInfo } from '../../protocol/process.ts';
import { ask, Problem } from '../core/http.ts';
import { visibleText } from '../model/words.ts';
import { Dialog } from '../parts/dialog.tsx';

interface Survivor {
  readonly pid: number;
  readonly command: string;
}

interface SignalResult {
  readonly signalled: readonly number[];
  readonly escapees: readonly number[];
  readonly survivors: readonly Survivor[];
  readonly escalated: boolean;
}

interface Stopping {
  readonly process: ProcessInfo;
  readonly step: 'ask' | 'wait' | 'done';
  readonly result?: SignalResult;
  readonly problem?: Problem;
}

const stopping = signal<Stopping | undefined>(undefined);

export function askToStop(process: ProcessInfo): void {
  stopping.value = { process, step: 'ask' };
}

export function StopDialog() {
  const now = stopping.value;
  if (!now) return null;
  const { process, step } = now;
  const close = (): void => {
    stopping.value = undefined;
  };
  return (
    <Dialog title={step === 'done' ? 'Stopped' : 'Stop this process?'} close={close}>
      <p class="cut">
        <code>{visibleText(process.command)}</code>
      </p>
      {step === 'ask' && (
        <p class="muted">
          It and all its descendants get SIGTERM, and SIGKILL when the grace period is over.
        </p>
      )}
      {step === 'wait' && <p role="status">Waiting for it to end …</p>}
      {step === 'done' && <Proof {...now} />}
      <p class="actions">
        {step === 'ask' ? (
          <>
            <button type="button" onClick={close}>
              Keep it
            </button>
            <button type="button" class="danger" autoFocus onClick={() => void stop(process)}>
              Stop
            </button>
          </>
        ) : (
          <button type="button" autoFocus onClick={close}>
            Close
          </button>
        )}
      </p>
    </Dialog>
  );
}

async function stop(process: ProcessInfo): Promise<void> {
  stopping.value = { process, step: 'wait' };
  try {
    const result = await stopProcess(process);
    if (stopping.value) stopping.value = { process, step: 'done', result };
  } catch (error) {
    if (stopping.value) stopping.value = { process, step: 'done', problem: error as Problem };
  }
}

/** With the proof of what was ended, and of what was not. */
export function stopProcess({ owner, id }: ProcessInfo): Promise<SignalResult> {
  return ask<SignalResult>('POST', `/v1/processes/${encodeURIComponent(id)}/signal`, {
    query: { owner },
    body: { signal: 'terminate', by: 'dashboard' },
  });
}

function Proof({ result, problem }: Stopping) {
  if (problem)
    return (
      <p class="problem" role="alert">
        {problem.message} {problem.remedy}
      </p>
    );
  if (!result) return null;
  const { signalled, escapees, survivors, escalated } = result;
  return (
    <div role="status">
      <p>
        {escalated ? 'SIGTERM, then SIGKILL' : 'SIGTERM'}; {signalled.length}{' '}
        {signalled.length === 1 ? 'process' : 'processes'} signalled
        {escapees.length > 0 && `, ${escapees.length} of them outside its group`}.
      </p>
      {survivors.length === 0 ? (
        <p class="good">✓ Nothing is left.</p>
      ) : (
        <>
          <p class="bad">■ Still alive:</p>
          <ul>
            {survivors.map(({ pid, command }) => (
              <li key={pid}>
                {pid} <code>{visibleText(command)}</code>
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}
