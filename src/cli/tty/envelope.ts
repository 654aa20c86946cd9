// What `tty` commands print: agent-tty's envelopes, error codes and exit codes, so that its scripts keep working.

import { HoldfastError } from '../../protocol/errors.ts';
import { envelope } from '../output/envelope.ts';
import { quoteJson } from '../output/terminal-text.ts';

const exitCodes = {
  INTERNAL_ERROR: 1,
  SKILL_NOT_FOUND: 1,
  INVALID_INPUT: 2,
  INVALID_SESSION_ID: 2,
  INVALID_DIMENSIONS: 2,
  INVALID_SIGNAL: 2,
  INVALID_KEYS: 2,
  INVALID_DURATION: 2,
  SESSION_NOT_FOUND: 3,
  SESSION_NOT_RUNNING: 4,
  SESSION_ALREADY_DESTROYED: 4,
  HOST_TIMEOUT: 5,
  HOST_UNREACHABLE: 6,
  EXPORT_ERROR: 7,
  STORAGE_READ_ERROR: 8,
  STORAGE_WRITE_ERROR: 8,
  RPC_ERROR: 9,
  REPLAY_ERROR: 10,
  WAIT_TIMEOUT: 11,
} as const;

export const STORAGE_WRITE_EXIT = exitCodes.STORAGE_WRITE_ERROR;

/** The line on stderr when stdout cannot be written. */
export function storageWriteLine(sentence: string): string {
  return `STORAGE_WRITE_ERROR: ${sentence}\n`;
}

export type TtyCode = keyof typeof exitCodes;
/** The exit code of a `wait` that timed out, which is a result and no error. */
export const WAIT_TIMEOUT_EXIT = 11;

export class TtyError extends Error {
  readonly code: TtyCode;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: TtyCode, message: string, details: Record<string, unknown> = {}) {
    super(message);
    this.code = code;
    this.details = details;
  }

  get exit(): number {
    return exitCodes[this.code];
  }

  get retryable(): boolean {
    return ['HOST_UNREACHABLE', 'HOST_TIMEOUT', 'RPC_ERROR'].includes(this.code);
  }
}

const codesOf: Partial<Record<HoldfastError['code'], TtyCode>> = {
  not_found: 'SESSION_NOT_FOUND',
  ambiguous: 'INVALID_SESSION_ID',
  not_a_terminal: 'SESSION_NOT_FOUND',
  not_running: 'SESSION_NOT_RUNNING',
  stdin_closed: 'SESSION_NOT_RUNNING',
  invalid_input: 'INVALID_INPUT',
  pattern_invalid: 'INVALID_INPUT',
  pattern_too_slow: 'INVALID_INPUT',
  program_not_found: 'INVALID_INPUT',
  program_not_executable: 'INVALID_INPUT',
  cwd_not_found: 'STORAGE_READ_ERROR',
  cwd_not_usable: 'INVALID_INPUT',
  keyboard_held: 'SESSION_NOT_RUNNING',
  keeper_unreachable: 'HOST_UNREACHABLE',
  keeper_lost: 'HOST_UNREACHABLE',
  not_answering: 'HOST_UNREACHABLE',
  path_unresponsive: 'STORAGE_READ_ERROR',
  keeper_too_old: 'RPC_ERROR',
  storage_full: 'STORAGE_WRITE_ERROR',
  storage_unavailable: 'STORAGE_WRITE_ERROR',
  journal_damaged: 'STORAGE_READ_ERROR',
};

const codesOfFields: Readonly<Record<string, TtyCode>> = {
  keys: 'INVALID_KEYS',
  signal: 'INVALID_SIGNAL',
  id: 'INVALID_SESSION_ID',
  'size.cols': 'INVALID_DIMENSIONS',
  'size.rows': 'INVALID_DIMENSIONS',
};

/** The error of agent-tty for anything that was thrown; `details.cause` has our own code. */
export function ttyError(thrown: unknown): TtyError {
  if (thrown instanceof TtyError) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  if (!(thrown instanceof HoldfastError)) return new TtyError('INTERNAL_ERROR', message);
  const { code, details } = thrown;
  const field = details['field'];
  const byField = code === 'invalid_input' && typeof field === 'string' && codesOfFields[field];
  const peerCode = byField || (codesOf[code] ?? 'INTERNAL_ERROR');
  return new TtyError(peerCode, message, { ...details, cause: code });
}

export function success(command: string, result: unknown): string {
  return pretty(envelope(command, { result }));
}

export function failure(command: string, { code, message, retryable, details }: TtyError): string {
  return pretty(envelope(command, { error: { code, message, retryable, details } }));
}

function pretty(value: unknown): string {
  return `${quoteJson(value, 2)}\n`;
}
