// `tty batch`

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseBatch, runBatch, type BatchResult } from '../../../terminals/batch.ts';
import type { TtyAnswer, TtyCall, TtyCommand } from '../command.ts';
import { TtyError, ttyError, WAIT_TIMEOUT_EXIT } from '../envelope.ts';
import { HoldfastError } from '../../../protocol/errors.ts';
import { withSession } from '../screen-session.ts';
import { liveTerminal } from '../sessions.ts';

export const batch: TtyCommand = {
  name: 'batch',
  usage: "ID '[STEP, ...]' | ID --file PATH [--keep-going]",
  summary: 'Do several steps: type, paste, sendKeys, run, wait.',
  examples: [`holdfast tty batch shell '[{"type":"ls"},{"sendKeys":["Enter"]}]'`],
  options: {
    file: { type: 'string', about: 'take the steps from a file' },
    'keep-going': { type: 'boolean', about: 'continue after a step that failed' },
  },
  async run(call): Promise<TtyAnswer> {
    const [id = '', text] = call.expect('ID', '[STEPS]');
    const steps = parseBatch(planOf(call, text));
    const keepGoing = call.flag('keep-going');
    const process = await liveTerminal(call.caller, id);
    const interrupt = new AbortController();
    let interruptedBy = 0;
    const stop = (signal: 'SIGINT' | 'SIGTERM'): void => {
      interruptedBy = signal === 'SIGINT' ? 130 : 143;
      interrupt.abort();
    };
    globalThis.process.once('SIGINT', stop).once('SIGTERM', stop);
    try {
      const result = await withSession(call, process, (session) =>
        runBatch(session, steps, { keepGoing, signal: interrupt.signal }),
      );
      return {
        result: inPeerShape(result),
        lines: linesOf(result),
        exitCode: interruptedBy || exitOf(result, keepGoing),
      };
    } finally {
      globalThis.process.removeListener('SIGINT', stop).removeListener('SIGTERM', stop);
    }
  },
};

function planOf(call: TtyCall, text: string | undefined): unknown {
  const path = call.text('file');
  if ((text === undefined) === (path === undefined))
    throw new TtyError(
      'INVALID_INPUT',
      text === undefined
        ? 'Provide the steps or --file.'
        : 'The steps and --file are mutually exclusive.',
    );
  try {
    return JSON.parse(
      path === undefined ? (text ?? '') : readFileSync(resolve(call.caller.cwd, path), 'utf8'),
    );
  } catch (error) {
    const reason = error instanceof Error ? error.message : '';
    throw new TtyError('INVALID_INPUT', `The steps are not JSON: ${reason}`);
  }
}

const tooLate = (message: string) => ({ code: 'WAIT_TIMEOUT', message });
const TOO_LATE: Readonly<Record<string, { code: string; message: string }>> = {
  wait: tooLate('The wait timed out before the screen matched.'),
  run: tooLate('The run timed out before its end was known. It keeps running.'),
};

/** With agent-tty's error codes. */
function inPeerShape(result: BatchResult): unknown {
  return {
    ...result,
    steps: result.steps.map(({ error, ...step }) => {
      if (!error && step.timedOut === true) return { ...step, error: TOO_LATE[step.kind] };
      if (!error) return step;
      const { code, message } = ttyError(
        new HoldfastError(error.code, error.message, { ...error.details }),
      );
      return { ...step, error: { code, message } };
    }),
  };
}

function linesOf({ steps }: BatchResult): string[] {
  return steps.map(({ index, kind, status }) => `${index}\t${kind}\t${status}`);
}

function exitOf({ steps, failedIndices }: BatchResult, keepGoing: boolean): number {
  const failed = steps[failedIndices[0] ?? -1];
  if (!failed) return 0;
  if (keepGoing) return 1;
  if (failed.error)
    return ttyError(new HoldfastError(failed.error.code, failed.error.message)).exit;
  return failed.timedOut === true ? WAIT_TIMEOUT_EXIT : 1;
}
