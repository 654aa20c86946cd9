// The error table: one row per error that a caller can get, with its code in each protocol. A code is never reused for
// another meaning. docs/errors.md repeats the table; the house test compares the two.

interface ErrorRow {
  readonly http: number;
  readonly rpc: number;
  /** Exit code of the command line. */
  readonly exit: number;
  /** The same call may succeed later. */
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
    'Send "Authorization: Bearer TOKEN". "holdfast token admin" prints a token.',
  ),
  forbidden: row(403, REFUSED, 12, 'Use a token, host name and origin that this server allows.'),
  from_inside: row(
    403,
    REFUSED,
    12,
    'Programs that Holdfast started act for the owner of their process. Do this from a program that Holdfast did not start.',
  ),
  tokens_damaged: later(
    503,
    FAILED,
    8,
    'Remove tokens.json from the state directory and create the scoped tokens again with "holdfast token create".',
  ),
  no_route: row(404, REFUSED, 2, 'Use one of the routes that /docs lists.'),
  method_not_allowed: row(405, REFUSED, 2, 'Use a method that the Allow header names.'),
  too_large: row(413, INVALID, 2, 'Send or request less at once.'),
  not_json: row(415, INVALID, 2, 'Send JSON with "Content-Type: application/json".'),
  not_found: row(
    404,
    REFUSED,
    3,
    'List your processes: this one may have been deleted by the retention limits.',
  ),
  ambiguous: row(409, REFUSED, 2, 'Give the full id, or name the owner.'),
  id_taken: row(409, REFUSED, 4, 'Choose another id, or omit it to get one.'),
  key_conflict: row(409, REFUSED, 4, 'Use a new idempotency key for a different start.'),
  lease_ended: row(409, REFUSED, 4, 'Open the lease again, or start without one.'),
  not_running: row(409, REFUSED, 4, 'The process has exited: read its output, or start it again.'),
  still_running: row(409, REFUSED, 4, 'Stop the process first, or remove it with "force".'),
  stdin_closed: row(
    409,
    REFUSED,
    4,
    'Start the process with stdin "pipe" or as a terminal, and write before you close stdin.',
  ),
  not_a_terminal: row(409, REFUSED, 4, 'Start the process with streams "pty" to get a terminal.'),
  keyboard_held: later(
    409,
    REFUSED,
    4,
    'Someone is attached and has the keyboard. Try again later, or watch with "holdfast attach --read-only"; reading still works.',
  ),
  program_not_found: row(
    422,
    FAILED,
    127,
    'Check the name of the program and the PATH of the process.',
  ),
  program_not_executable: row(
    422,
    FAILED,
    126,
    'Make the file executable, or run it through its interpreter.',
  ),
  cwd_not_found: row(422, FAILED, 5, 'Create the directory, or use an existing one.'),
  cwd_not_usable: row(422, FAILED, 5, 'Use a directory that this user may enter.'),
  path_unresponsive: later(
    503,
    FAILED,
    5,
    'Check the mount (a network or FUSE file system), or use another path.',
  ),
  arguments_too_long: row(422, FAILED, 5, 'Pass large input through stdin or a file.'),
  too_many_files: later(
    503,
    FAILED,
    6,
    'Stop some processes or raise the limit on open files, then try again.',
  ),
  too_many_processes: later(
    503,
    FAILED,
    6,
    'Stop some processes or raise the limit, then try again.',
  ),
  no_memory: later(503, FAILED, 6, 'Free memory and try again.'),
  spawn_failed: row(500, FAILED, 6, 'See the message for the reason that the system gave.'),
  limit_reached: later(429, REFUSED, 7, 'Wait until a process exits, or raise the named limit.'),
  storage_full: later(
    507,
    FAILED,
    8,
    'Free disk space. Running processes continue; their output is held in memory.',
  ),
  storage_unavailable: later(
    503,
    FAILED,
    8,
    'Make the state directory readable and writable. Running processes continue.',
  ),
  journal_damaged: row(
    500,
    FAILED,
    8,
    'Read the undamaged output with "holdfast export"; it names the damaged part.',
  ),
  pattern_invalid: row(400, INVALID, 2, 'Correct the regular expression.'),
  pattern_too_slow: row(
    400,
    INVALID,
    2,
    'Simplify the pattern; nested repetition is the usual cause.',
  ),
  aborted: row(499, REFUSED, 130, 'The caller cancelled the call; the process keeps running.'),
  host_closed: row(503, FAILED, 9, 'Start the host again.'),
  keeper_unreachable: later(503, FAILED, 9, 'Read keeper.log in the state directory.'),
  keeper_lost: later(503, FAILED, 9, 'Try again: a new keeper starts and reports what was lost.'),
  not_answering: later(
    504,
    FAILED,
    11,
    'Wait, or send SIGCONT if it is stopped. "holdfast shutdown" ends the keeper, "holdfast restart" restarts only the server.',
  ),
  keeper_too_old: row(
    501,
    FAILED,
    9,
    'When its processes have exited, run "holdfast shutdown"; the next call starts a new keeper.',
  ),
  host_unreachable: later(
    503,
    FAILED,
    9,
    'Try again when the host is back: its processes continue. "holdfast fleet hosts" shows its state.',
  ),
  archive_unavailable: later(
    503,
    FAILED,
    9,
    'Make the archive of the fleet reachable again: "holdfast gateway --archive" names it.',
  ),
  archive_damaged: row(
    500,
    FAILED,
    8,
    'Restore the named object of the archive from a copy. While its host is there, the process can be read at the host.',
  ),
  no_host: later(
    503,
    FAILED,
    9,
    'Start a host with these labels, or end the draining of one. "holdfast fleet hosts" lists them.',
  ),
  fabric_degraded: later(
    503,
    FAILED,
    9,
    'Start NATS again, or wait until it has a leader. Hosts and their own servers continue meanwhile.',
  ),
  port_in_use: row(409, REFUSED, 4, 'Choose another port, or stop the program that uses it.'),
  server_running: row(
    409,
    REFUSED,
    4,
    'Use the running server, or start this one with another --socket and --port.',
  ),
  home_unsafe: row(
    500,
    FAILED,
    9,
    'Make the state directory your own, with mode 0700 and not a symbolic link.',
  ),
  limit_unenforceable: row(
    501,
    REFUSED,
    10,
    'Leave the limit out, or start with enforce "best" (--enforce best): the answer then says what holds. "holdfast doctor" lists what this machine can enforce.',
  ),
  sandbox_unenforceable: row(
    501,
    REFUSED,
    10,
    'Ask for another sandbox, or start with enforce "best" (--enforce best): the answer then says what holds. "holdfast doctor" lists what this machine can enforce.',
  ),
  above_ceiling: row(403, REFUSED, 12, 'Ask for less, or use a token with a higher ceiling.'),
  unsupported: row(501, FAILED, 10, 'This platform does not support the call.'),
  internal: row(500, FAILED, 1, 'This is a bug in Holdfast; please report it with the message.'),
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof errors;

/** A caller's problem. Our own mistakes are plain Errors and are reported as `internal`. */
export class HoldfastError extends Error {
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, details: Record<string, unknown> = {}) {
    super(message);
    this.name = 'HoldfastError';
    this.code = code;
    this.details = details;
  }

  /** `details.remedy` overrides the remedy of the table. */
  get remedy(): string {
    const { remedy } = this.details;
    return typeof remedy === 'string' ? remedy : errors[this.code].remedy;
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

/** The serializable form of anything thrown. */
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
