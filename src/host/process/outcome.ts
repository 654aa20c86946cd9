// Determines the outcome of a child from its status and from what we did to it, and what limits had to do with it.

import { constants } from 'node:os';
import type { Cause, Confinement } from '../../protocol/confinement/confinement.ts';
import type { Outcome } from '../../protocol/process.ts';
import type { ExitStatus } from '../child/child.ts';
import type { ResourceUse } from './resource-use.ts';

export interface Circumstances {
  /** The last sender of each signal, by the signal's name. */
  readonly sentBy: ReadonlyMap<string, string> | undefined;
  readonly timedOutAfterMs: number | undefined;
  /** Processes of its group that the kernel ended because memory ran out. */
  readonly memoryVictims: number;
  /** bubblewrap stands between us and the command, and exits with 128 + n if signal n ended the command. */
  readonly wasWrapped: boolean;
}

export function outcomeOf(status: ExitStatus, circumstances: Circumstances): Outcome {
  const { sentBy, timedOutAfterMs, memoryVictims, wasWrapped } = circumstances;
  if (timedOutAfterMs !== undefined) {
    const { code, signal } = status;
    const how = { ...(code !== undefined && { code }), ...(signal !== undefined && { signal }) };
    return { kind: 'timeout', afterMs: timedOutAfterMs, ...how };
  }
  const passedOn = wasWrapped ? sentSignal(status.code, sentBy) : undefined;
  if (passedOn) return { kind: 'signal', ...passedOn };
  if (status.code !== undefined) return { kind: 'exit', code: status.code };
  // Other code reaped it: the status is unknown.
  if (status.signal === undefined)
    return { kind: 'lost', reason: 'its exit status went to another part of this program' };
  const by = sentBy?.get(status.signal);
  if (by !== undefined) return { kind: 'signal', signal: status.signal, by };
  if (memoryVictims > 0 && status.signal === 'SIGKILL')
    return { kind: 'oom', signal: status.signal };
  const maybeOom = status.maybeOom === true && { maybeOom: true as const };
  return { kind: 'signal', signal: status.signal, by: 'outside', ...maybeOom };
}

/** Only for a signal that we sent: otherwise the code may be the command's own. */
function sentSignal(
  code: number | undefined,
  sentBy: Circumstances['sentBy'],
): { signal: string; by: string } | undefined {
  if (code === undefined || code <= 128) return undefined;
  for (const [signal, by] of sentBy ?? [])
    if ((constants.signals as Record<string, number>)[signal] === code - 128) return { signal, by };
  return undefined;
}

/** A shell exits with 128 + n for a command that signal n ended. */
const [SIGXCPU_CODE, SIGXFSZ_CODE] = [128 + 24, 128 + 25];

/** Also those that its status shows. `known`: what the host itself did because of a limit that it watches. */
export function causesAtExit(
  known: readonly Cause[],
  about: {
    readonly status: ExitStatus;
    readonly use: ResourceUse;
    readonly limits: Confinement | undefined;
  },
): readonly Cause[] {
  const { status, use, limits } = about;
  const ended = (signal: string, code: number): boolean =>
    status.signal === signal || status.code === code;
  return [
    ...countedCauses(known, use),
    ...(limits?.cpuSeconds && ended('SIGXCPU', SIGXCPU_CODE)
      ? [{ kind: 'cpu_seconds' as const }]
      : []),
    ...(limits?.fileBytes && ended('SIGXFSZ', SIGXFSZ_CODE)
      ? [{ kind: 'file_bytes' as const }]
      : []),
  ];
}

/** With what the kernel has counted in the group until now, in place of earlier counts. */
function countedCauses(known: readonly Cause[], { group }: ResourceUse): readonly Cause[] {
  const { memoryVictims = 0, reachedMemoryLimit = false, refusedForks = 0 } = group ?? {};
  const memory = reachedMemoryLimit ? ('memory_limit' as const) : ('out_of_memory' as const);
  const counted: Cause[] = [
    ...(memoryVictims > 0 ? [{ kind: memory, victims: memoryVictims }] : []),
    ...(refusedForks > 0 ? [{ kind: 'pids_limit' as const, hits: refusedForks }] : []),
  ];
  return [...known.filter(({ kind }) => counted.every((each) => each.kind !== kind)), ...counted];
}

/** When nobody is left: what descendants have used, and which limits they met, since the exit of the root. */
export function recount(process: { causes: readonly Cause[]; readonly use: ResourceUse }): void {
  process.use.readGroup();
  process.causes = countedCauses(process.causes, process.use);
}
