// A batch: steps for one terminal, all checked before the first one runs. Each wait considers only the screen after the
// input before it.

import type { CancelSignal } from '../base/cancel-signal.ts';
import { HoldfastError, toErrorShape, type ErrorShape } from '../protocol/errors.ts';
import type { ScreenCondition } from '../protocol/screen-condition.ts';
import { checkKeys } from '../screen/view/keys.ts';
import type { TerminalSession } from './terminal-session.ts';

export type BatchStep =
  | { readonly kind: 'type'; readonly text: string }
  | { readonly kind: 'paste'; readonly text: string }
  | { readonly kind: 'sendKeys'; readonly keys: readonly string[] }
  | {
      readonly kind: 'run';
      readonly command: string;
      readonly noWait: boolean;
      readonly timeoutMs: number;
    }
  | { readonly kind: 'wait'; readonly condition: ScreenCondition; readonly timeoutMs: number };

interface StepRecord {
  readonly index: number;
  readonly kind: BatchStep['kind'];
  readonly status: 'completed' | 'failed' | 'not-run' | 'interrupted';
  readonly durationMs: number;
  readonly seq?: number;
  readonly noWait?: boolean;
  readonly completed?: boolean;
  readonly timedOut?: boolean;
  readonly exitCode?: number;
  readonly runOutcome?: 'completed' | 'timedOut' | 'sessionExited' | 'started';
  readonly waitBaseline?: number;
  readonly matched?: boolean;
  readonly matchedText?: string;
  readonly capturedAtSeq?: number;
  readonly screenHash?: string;
  readonly error?: ErrorShape;
}

export interface BatchResult {
  readonly steps: readonly StepRecord[];
  readonly completedCount: number;
  readonly failedIndices: readonly number[];
}

export interface BatchOptions {
  readonly keepGoing: boolean;
  readonly signal?: CancelSignal | undefined;
}

const DEFAULT_RUN_MS = 30_000;
const DEFAULT_WAIT_MS = 600_000;
const VERBS = ['type', 'paste', 'sendKeys', 'run', 'wait'] as const;
const WAIT_FIELDS = new Set([
  'text',
  'regex',
  'screenStableMs',
  'cursorRow',
  'cursorCol',
  'timeout',
  'where',
  'gone',
]);

/** The steps, or `invalid_input` with the index of the first wrong one. */
export function parseBatch(plan: unknown): BatchStep[] {
  if (!Array.isArray(plan) || plan.length === 0)
    throw new HoldfastError('invalid_input', 'A batch is a JSON array of at least one step.');
  return plan.map((step: unknown, index) => {
    try {
      return parseStep(step);
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      const details = { ...error.details, stepIndex: index };
      throw new HoldfastError(error.code, `Step ${index}: ${error.message}`, details);
    }
  });
}

function parseStep(step: unknown): BatchStep {
  if (typeof step !== 'object' || step === null || Array.isArray(step))
    throw invalidStep('is not an object.');
  const given = step as Record<string, unknown>;
  const verbs = VERBS.filter((verb) => Object.hasOwn(given, verb));
  const [verb] = verbs;
  if (verb === undefined || verbs.length > 1)
    throw invalidStep(`must have exactly one of ${VERBS.join(', ')}.`);
  const others = verb === 'run' ? ['noWait', 'timeout'] : [];
  const unknown = Object.keys(given).find((name) => name !== verb && !others.includes(name));
  if (unknown !== undefined) throw invalidStep(`"${unknown.slice(0, 40)}" is not known here.`);
  if (verb === 'type' || verb === 'paste') return { kind: verb, text: text(given[verb], verb) };
  if (verb === 'sendKeys') return { kind: verb, keys: keys(given[verb]) };
  if (verb === 'run') {
    const { noWait = false, timeout = DEFAULT_RUN_MS } = given;
    if (typeof noWait !== 'boolean') throw invalidStep('"noWait" must be true or false.');
    return {
      kind: 'run',
      command: text(given['run'], 'run'),
      noWait,
      timeoutMs: whole(timeout, 'timeout'),
    };
  }
  return waitStep(given['wait']);
}

function waitStep(given: unknown): BatchStep {
  if (typeof given !== 'object' || given === null) throw invalidStep('"wait" must be an object.');
  const fields = given as Record<string, unknown>;
  const unknown = Object.keys(fields).find((name) => !WAIT_FIELDS.has(name));
  if (unknown !== undefined) throw invalidStep(`"wait.${unknown.slice(0, 40)}" is not known here.`);
  const { screenStableMs, cursorRow, cursorCol, where, gone, timeout = DEFAULT_WAIT_MS } = fields;
  if (fields['text'] !== undefined && fields['regex'] !== undefined)
    throw invalidStep('"wait" takes either "text" or "regex".');
  const condition: ScreenCondition = {
    ...(fields['text'] !== undefined && { text: text(fields['text'], 'wait.text') }),
    ...(fields['regex'] !== undefined && { regex: text(fields['regex'], 'wait.regex') }),
    ...(screenStableMs !== undefined && { stableMs: whole(screenStableMs, 'wait.screenStableMs') }),
    ...(cursorRow !== undefined && { cursorRow: whole(cursorRow, 'wait.cursorRow') }),
    ...(cursorCol !== undefined && { cursorCol: whole(cursorCol, 'wait.cursorCol') }),
    ...(where === 'stream' && { where }),
    ...(gone === true && { gone }),
  };
  if (Object.keys(condition).length === 0) throw invalidStep('"wait" has no condition.');
  return { kind: 'wait', condition, timeoutMs: whole(timeout, 'wait.timeout') };
}

function text(value: unknown, name: string): string {
  if (typeof value !== 'string' || value === '')
    throw invalidStep(`"${name}" must be a text that is not empty.`);
  return value;
}

function whole(value: unknown, name: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0)
    throw invalidStep(`"${name}" must be a whole number.`);
  return value;
}

function keys(value: unknown): string[] {
  const names = Array.isArray(value) ? value : [];
  if (names.length === 0 || !names.every((name) => typeof name === 'string'))
    throw invalidStep('"sendKeys" must be a list of names of keys.');
  checkKeys(names);
  return names;
}

function invalidStep(problem: string): HoldfastError {
  return new HoldfastError('invalid_input', problem);
}

export async function runBatch(
  session: TerminalSession,
  steps: readonly BatchStep[],
  { keepGoing, signal }: BatchOptions,
): Promise<BatchResult> {
  const records: StepRecord[] = [];
  let baseline = 0;
  let failed = false;
  for (const [index, step] of steps.entries()) {
    const { kind } = step;
    if (signal?.aborted === true || (failed && !keepGoing)) {
      records.push({ index, kind, status: 'not-run', durationMs: 0 });
      continue;
    }
    const startedMs = performance.now();
    const done = await perform(session, step, baseline, signal);
    const durationMs = Math.round(performance.now() - startedMs);
    baseline = done.seq ?? baseline;
    failed ||= done.status !== 'completed';
    records.push({ index, kind, durationMs, ...done });
  }
  return {
    steps: records,
    completedCount: records.filter(({ status }) => status === 'completed').length,
    failedIndices: records.filter(({ status }) => status === 'failed').map(({ index }) => index),
  };
}

type Done = Omit<StepRecord, 'index' | 'kind' | 'durationMs'>;

async function perform(
  session: TerminalSession,
  step: BatchStep,
  baseline: number,
  signal: CancelSignal | undefined,
): Promise<Done> {
  try {
    switch (step.kind) {
      case 'type':
        return { status: 'completed', seq: (await session.type(step.text)).seq };
      case 'paste':
        return { status: 'completed', seq: (await session.paste(step.text)).seq };
      case 'sendKeys':
        return { status: 'completed', seq: (await session.keys(step.keys)).seq };
      case 'run':
        return await performRun(session, step, signal);
      case 'wait':
        return await performWait(session, step, baseline, signal);
    }
  } catch (error) {
    if (signal?.aborted === true) return { status: 'interrupted' };
    return { status: 'failed', error: toErrorShape(error) };
  }
}

async function performRun(
  session: TerminalSession,
  { command, noWait, timeoutMs }: Extract<BatchStep, { kind: 'run' }>,
  signal: CancelSignal | undefined,
): Promise<Done> {
  const result = await session.run({ command, wait: !noWait, timeoutMs }, signal);
  const { seq, completed, timedOut, exitCode } = result;
  if (noWait) return { status: 'completed', seq, noWait, runOutcome: 'started' };
  const runOutcome = completed ? 'completed' : timedOut ? 'timedOut' : 'sessionExited';
  // A run whose end cannot be detected is not a failure: it was typed, and the terminal is quiet.
  const good = completed || (!timedOut && result.ended !== true);
  return {
    status: good ? 'completed' : 'failed',
    seq,
    noWait,
    completed,
    timedOut,
    runOutcome: good ? 'completed' : runOutcome,
    ...(exitCode !== undefined && { exitCode }),
  };
}

async function performWait(
  session: TerminalSession,
  { condition, timeoutMs }: Extract<BatchStep, { kind: 'wait' }>,
  waitBaseline: number,
  signal: CancelSignal | undefined,
): Promise<Done> {
  const waited = await session.wait(condition, {
    afterSeq: waitBaseline,
    ...(timeoutMs > 0 && { timeoutMs }),
    ...(signal && { signal }),
  });
  const { matched, timedOut, matchedText, snapshot } = waited;
  return {
    status: matched ? 'completed' : 'failed',
    waitBaseline,
    matched,
    timedOut,
    ...(matchedText !== undefined && { matchedText }),
    capturedAtSeq: snapshot.seq,
    ...(matched && { screenHash: snapshot.hash }),
  };
}
