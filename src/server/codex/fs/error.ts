// Errors of the operating system as codex reports them: "No such file or directory (os error 2)", with a code that
// depends on the error.

import { constants } from 'node:os';
import { errnoOf } from '../../../base/disk.ts';
import { RpcError, rpcCodes } from '../rpc.ts';

/** The C library's texts. libuv's differ, and clients compare. */
const words: Readonly<Record<string, string>> = {
  EPERM: 'Operation not permitted',
  ENOENT: 'No such file or directory',
  EIO: 'Input/output error',
  ENXIO: 'No such device or address',
  E2BIG: 'Argument list too long',
  ENOEXEC: 'Exec format error',
  EBADF: 'Bad file descriptor',
  EAGAIN: 'Resource temporarily unavailable',
  ENOMEM: 'Cannot allocate memory',
  EACCES: 'Permission denied',
  EBUSY: 'Device or resource busy',
  EEXIST: 'File exists',
  EXDEV: 'Invalid cross-device link',
  ENODEV: 'No such device',
  ENOTDIR: 'Not a directory',
  EISDIR: 'Is a directory',
  EINVAL: 'Invalid argument',
  ENFILE: 'Too many open files in system',
  EMFILE: 'Too many open files',
  ETXTBSY: 'Text file busy',
  EFBIG: 'File too large',
  ENOSPC: 'No space left on device',
  EROFS: 'Read-only file system',
  EMLINK: 'Too many links',
  ENAMETOOLONG: 'File name too long',
  ENOTEMPTY: 'Directory not empty',
  // The text of musl, which codex is built with.
  ELOOP: 'Symbolic link loop',
  EDQUOT: 'Disk quota exceeded',
  EOPNOTSUPP: 'Operation not supported',
  ETIMEDOUT: 'Connection timed out',
};

/** An error that we raise ourselves as if a system call had failed with it. */
export class SystemError extends Error {
  readonly code: keyof typeof constants.errno;

  constructor(code: keyof typeof constants.errno) {
    super(osText(code));
    this.name = 'SystemError';
    this.code = code;
  }
}

/** "Exec format error (os error 8)" */
export function osText(code: string): string {
  const number = (constants.errno as Readonly<Record<string, number>>)[code];
  const known = words[code] ?? code;
  return number === undefined ? known : `${known} (os error ${number})`;
}

/** The answer for an error of a filesystem method; undefined for a bug of ours. */
export function fsError(thrown: unknown): RpcError | undefined {
  if (thrown instanceof RpcError) return thrown;
  const code = errnoOf(thrown);
  if (code === undefined || !(code in constants.errno)) return undefined;
  return new RpcError(codeOf(code), osText(code));
}

function codeOf(code: string): number {
  if (code === 'ENOENT') return rpcCodes.notFound;
  return ['EINVAL', 'EACCES', 'EPERM'].includes(code) ? rpcCodes.refused : rpcCodes.failed;
}

export function refused(message: string): RpcError {
  return new RpcError(rpcCodes.refused, message);
}
