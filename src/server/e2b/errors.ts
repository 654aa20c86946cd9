// Errors as E2B's clients know them: a code of the Connect protocol for RPC calls, a number for everything else.

import { errnoOf } from '../../base/disk.ts';
import { HoldfastError, type ErrorCode } from '../../protocol/errors.ts';

/** The codes of the Connect protocol that are used here, with their HTTP status. */
const statuses = {
  unknown: 500,
  invalid_argument: 400,
  deadline_exceeded: 504,
  not_found: 404,
  already_exists: 409,
  permission_denied: 403,
  resource_exhausted: 429,
  failed_precondition: 400,
  unimplemented: 501,
  internal: 500,
  unavailable: 503,
  unauthenticated: 401,
} as const;

type ConnectCode = keyof typeof statuses;

const ours: Readonly<Record<ConnectCode, ErrorCode>> = {
  unknown: 'internal',
  invalid_argument: 'invalid_input',
  deadline_exceeded: 'not_answering',
  not_found: 'not_found',
  already_exists: 'invalid_input',
  permission_denied: 'forbidden',
  resource_exhausted: 'limit_reached',
  failed_precondition: 'invalid_input',
  unimplemented: 'unsupported',
  internal: 'internal',
  unavailable: 'keeper_unreachable',
  unauthenticated: 'unauthorized',
};

/** An error in the words of E2B; logs and metrics use the code of our error table. */
export class E2bError extends HoldfastError {
  readonly connect: ConnectCode;
  /** Of the routes that are no RPC. */
  readonly status: number;

  constructor(connect: ConnectCode, message: string, status: number = statuses[connect]) {
    super(ours[connect], message);
    this.connect = connect;
    this.status = status;
  }
}

/** The sandbox was killed or its time is over. Clients take 502 for exactly this. */
export function sandboxGone(): E2bError {
  const message = 'The sandbox was not found: it was killed or reached its end of life.';
  return new E2bError('unavailable', message, 502);
}

/** `not_running` is not found, because E2B forgets processes that have ended. Others are `internal`. */
const codes: Partial<Record<ErrorCode, ConnectCode>> = {
  invalid_input: 'invalid_argument',
  not_json: 'invalid_argument',
  too_large: 'invalid_argument',
  program_not_found: 'invalid_argument',
  program_not_executable: 'invalid_argument',
  cwd_not_found: 'invalid_argument',
  cwd_not_usable: 'invalid_argument',
  arguments_too_long: 'invalid_argument',
  spawn_failed: 'invalid_argument',
  unauthorized: 'unauthenticated',
  forbidden: 'permission_denied',
  from_inside: 'permission_denied',
  not_found: 'not_found',
  not_running: 'not_found',
  lease_ended: 'unavailable',
  limit_reached: 'resource_exhausted',
  too_many_processes: 'resource_exhausted',
  too_many_files: 'resource_exhausted',
  keeper_unreachable: 'unavailable',
  keeper_lost: 'unavailable',
  host_closed: 'unavailable',
  not_answering: 'unavailable',
  no_route: 'unimplemented',
  method_not_allowed: 'unimplemented',
  unsupported: 'unimplemented',
};

interface ConnectError {
  readonly code: ConnectCode;
  readonly message: string;
}

export function connectError(error: HoldfastError): ConnectError {
  const code = error instanceof E2bError ? error.connect : (codes[error.code] ?? 'internal');
  return { code, message: error.message };
}

export function statusOf(error: HoldfastError): number {
  return error instanceof E2bError ? error.status : statuses[codes[error.code] ?? 'internal'];
}

/** Errors of file operations; anything else is rethrown. */
export function fileError(thrown: unknown, path: string): E2bError {
  if (thrown instanceof E2bError) return thrown;
  const code = errnoOf(thrown);
  if (code === 'ENOENT') return new E2bError('not_found', `path '${path}' does not exist`);
  if (code === 'ENOTDIR')
    return new E2bError('invalid_argument', `path is not a directory: ${path}`);
  if (code === 'EISDIR') return new E2bError('invalid_argument', `path '${path}' is a directory`);
  if (code === 'ENAMETOOLONG')
    return new E2bError('invalid_argument', `path '${path.slice(0, 100)}...' is too long`);
  if (code === 'ELOOP')
    return new E2bError('failed_precondition', `path '${path}' has a cycle of links`);
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS')
    return new E2bError('permission_denied', `path '${path}' is not accessible (${code})`);
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new E2bError('resource_exhausted', 'not enough disk space', 507);
  if (code === 'ETIMEDOUT')
    return new E2bError('deadline_exceeded', `path '${path}': its file system does not answer`);
  if (code === undefined) throw thrown;
  return new E2bError('internal', `path '${path}': ${code}`);
}
