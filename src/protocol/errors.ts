// The error table: one row per thing that can go wrong for a caller, and what each door makes of it. A code is never
// reused for another meaning. docs/errors.md repeats the table for readers; the house test keeps the two in step.

interface ErrorRow {
  readonly http: number;
  readonly rpc: number;
  /** Exit code of the command line. */
  readonly exit: number;
  /** True when the same call may succeed later without being changed. */
  readonly retryable: boolean;
  readonly remedy: string;
}

const INVALID = -32602;
const REFUSED = -32600;
const FAILED = -32603;

function row(http: number, rpc: number, exit: number, remedy: string): ErrorRow {
  return { http, rpc, exit, retryable: false, remedy };
}

function later(http: number, rpc: number, exit: number, remedy: string): ErrorRow {
  return { http, rpc, exit, retryable: true, remedy };
}

export const errors = {
  invalid_input: row(400, INVALID, 2, 'Correct the named field and call again.'),
  unauthorized: row(
    401,
    REFUSED,
    12,
    'Send "Authorization: Bearer TOKEN"; the admin token is in the file "token" of the state directory.',
  ),
  forbidden: row(403, REFUSED, 12, 'This caller, host name or origin is not allowed here.'),
  no_route: row(404, REFUSED, 2, 'See /docs for what there is.'),
  method_not_allowed: row(405, REFUSED, 2, 'Use a method that the Allow header names.'),
  too_large: row(413, INVALID, 2, 'Send less at once.'),
  not_json: row(415, INVALID, 2, 'Send JSON with "Content-Type: application/json".'),
  not_found: row(
    404,
    REFUSED,
    3,
    'List the processes you own; it may have been removed by retention.',
  ),
  id_taken: row(409, REFUSED, 4, 'Choose another id, or leave it out to be given one.'),
  key_conflict: row(409, REFUSED, 4, 'Use a new idempotency key for a different start.'),
  not_running: row(409, REFUSED, 4, 'It has ended; read its output or start it again.'),
  still_running: row(409, REFUSED, 4, 'End it first, or remove it with "force".'),
  stdin_closed: row(
    409,
    REFUSED,
    4,
    'Start it with stdin "pipe" or as a terminal, and write before closing stdin.',
  ),
  not_a_terminal: row(409, REFUSED, 4, 'Only a process started with streams "pty" has a size.'),
  keyboard_held: later(
    409,
    REFUSED,
    4,
    'Wait until it is given back, or ask whoever holds it; reading goes on.',
  ),
  program_not_found: row(
    422,
    FAILED,
    127,
    'Check the name and the PATH that the process is given.',
  ),
  program_not_executable: row(
    422,
    FAILED,
    126,
    'Make the file executable, or run it through its interpreter.',
  ),
  cwd_not_found: row(422, FAILED, 5, 'Create the directory or name an existing one.'),
  cwd_not_usable: row(422, FAILED, 5, 'Name a directory that this user may enter.'),
  arguments_too_long: row(422, FAILED, 5, 'Pass large input through stdin or a file.'),
  too_many_files: later(
    503,
    FAILED,
    6,
    'Close something, or raise the limit on open files, and try again.',
  ),
  too_many_processes: later(
    503,
    FAILED,
    6,
    'End some processes, or raise the limit, and try again.',
  ),
  no_memory: later(503, FAILED, 6, 'Free memory and try again.'),
  spawn_failed: row(500, FAILED, 6, 'The message carries the reason that the system gave.'),
  limit_reached: later(429, REFUSED, 7, 'Wait for something to end, or raise the named limit.'),
  storage_full: later(
    507,
    FAILED,
    8,
    'Free disk space; running processes go on and their output is kept in memory.',
  ),
  storage_unavailable: later(
    503,
    FAILED,
    8,
    'Make the state directory writable; running processes go on.',
  ),
  journal_damaged: row(
    500,
    FAILED,
    8,
    'Read what is left with "holdfast export"; the damaged part is named.',
  ),
  pattern_invalid: row(400, INVALID, 2, 'Correct the regular expression.'),
  pattern_too_slow: row(
    400,
    INVALID,
    2,
    'Simplify the pattern: nested repetition is the usual cause.',
  ),
  aborted: row(499, REFUSED, 130, 'The caller gave up; the process goes on.'),
  host_closed: row(503, FAILED, 9, 'Start the host again.'),
  keeper_unreachable: later(503, FAILED, 9, 'Look at keeper.log in the state directory.'),
  keeper_lost: later(503, FAILED, 9, 'Call again: a new keeper starts and reports what was lost.'),
  keeper_too_old: row(
    501,
    FAILED,
    9,
    'Let its processes end, then run "holdfast shutdown"; the next call starts the new one.',
  ),
  server_running: row(
    409,
    REFUSED,
    4,
    'Use the running server, or give this one another --socket and --port.',
  ),
  home_unsafe: row(500, FAILED, 9, 'The state directory must be yours, mode 0700, and not a link.'),
  unsupported: row(501, FAILED, 10, 'This platform lacks what the call needs.'),
  internal: row(
    500,
    FAILED,
    1,
    'This is a mistake in Holdfast; please report it with the message.',
  ),
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof errors;

/** A caller's problem. Our own mistakes are plain Errors and become `internal` at the door. */
export class HoldfastError extends Error {
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, details: Record<string, unknown> = {}) {
    super(message);
    this.name = 'HoldfastError';
    this.code = code;
    this.details = details;
  }

  get remedy(): string {
    return errors[this.code].remedy;
  }

  get retryable(): boolean {
    return errors[this.code].retryable;
  }
}

export interface ErrorShape {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** What crosses a wire for anything thrown. */
export function toErrorShape(thrown: unknown): ErrorShape {
  if (thrown instanceof HoldfastError) {
    const { code, message, details } = thrown;
    return Object.keys(details).length > 0 ? { code, message, details } : { code, message };
  }
  return { code: 'internal', message: thrown instanceof Error ? thrown.message : String(thrown) };
}

export function fromErrorShape(shape: ErrorShape): HoldfastError {
  const code: ErrorCode = Object.hasOwn(errors, shape.code) ? shape.code : 'internal';
  return new HoldfastError(code, shape.message, { ...shape.details });
}
