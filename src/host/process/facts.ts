// The facts of a process: decided at its start and never changed. They are the body of its first event, so that the
// journal alone has them. They contain no value of its environment.

import type { Clock } from '../../base/clock.ts';
import type { HeldProcess } from './held-process.ts';
import type { StartedBody } from '../../protocol/event.ts';
import type { Cause, Confinement } from '../../protocol/confinement/confinement.ts';
import type { Outcome, StartFacts, Usage } from '../../protocol/process.ts';

export interface ProcessFacts extends StartFacts {
  /** Names its files and marks its descendants; differs from `id` if the caller chose that. */
  readonly serial: string;
  /** HMAC of the inputs of the start, to recognise a repeated start. */
  readonly fingerprint: string;
  readonly keepMs?: number;
  readonly hardTimeoutMs?: number;
  readonly confinement?: Confinement;
  /** Distinguishes a reboot from a restart: after a reboot no descendant can be alive. */
  readonly bootId: string;
}

/** The ending, from the last event of a finished journal. */
export interface Ending {
  readonly outcome: Outcome;
  readonly exitedAtMs: number;
  readonly closedAtMs: number;
  readonly durationMs: number;
  readonly usage?: Usage | undefined;
  readonly causes?: readonly Cause[];
  readonly lastOutputAtMs?: number;
  readonly tornBytes?: number;
}

/** What is known of a process when its last stream has ended. */
export function endingOf(
  process: Pick<HeldProcess, 'causes' | 'durationMs' | 'lastOutputAtMs' | 'settled' | 'use'>,
  known: Pick<Ending, 'outcome' | 'exitedAtMs'>,
  clock: Clock,
): Ending {
  const { lastOutputAtMs } = process;
  return {
    ...known,
    closedAtMs: clock.wallMs(),
    durationMs: process.durationMs(),
    usage: process.use.usage(process.settled),
    ...(process.causes.length > 0 && { causes: process.causes }),
    ...(lastOutputAtMs !== undefined && { lastOutputAtMs }),
  };
}

export function factsOf(body: StartedBody): ProcessFacts {
  return body as unknown as ProcessFacts;
}

export function startedBody(facts: ProcessFacts): StartedBody {
  return { ...facts };
}

const COMMAND_BYTES = 1024;

/** Identifies the process in a completion. */
export function shortFacts({ id, owner, command, name, labels }: ProcessFacts) {
  return {
    id,
    owner,
    command: command.slice(0, COMMAND_BYTES),
    ...(name !== undefined && { name }),
    ...(labels && { labels }),
  };
}
