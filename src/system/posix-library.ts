// The C library, and quick ones for sums and base64, opened through koffi: the only file that knows koffi. posix.ts and
// posix-spawn.ts say what is called.

import { createRequire } from 'node:module';
import { constants } from 'node:os';

import type * as Koffi from 'koffi';

import type { EncodeBase64 } from '../base/bytes/base64.ts';
import type { Crc32 } from '../base/bytes/crc32.ts';

export class PosixError extends Error {
  /** "ENOENT" */
  readonly errno: string;

  constructor(errno: string, call: string) {
    super(`${call}: ${errno}`);
    this.name = 'PosixError';
    this.errno = errno;
  }
}

/** The answer of a call that only asks; undefined when the kernel does not tell. */
export function asked<T>(ask: () => T): T | undefined {
  try {
    return ask();
  } catch (error) {
    if (!(error instanceof PosixError)) throw error;
    return undefined;
  }
}

const errnoNames = new Map<number, string>();
for (const [name, value] of Object.entries(constants.errno)) {
  if (!errnoNames.has(value)) errnoNames.set(value, name);
}

export function errnoName(value: number): string {
  return errnoNames.get(value) ?? `errno ${value}`;
}

/** A C function. */
type Call<Result> = (...values: unknown[]) => Result;

/** Koffi's own: the last value is called back on the main thread when another one has made the call. */
interface ThreadedCall {
  readonly async: (...values: unknown[]) => void;
}

export interface Binding {
  /** A function that reports failure by a negative result and errno: throws a PosixError. */
  readonly failing: (definition: string) => Call<number>;
  /** The same, but the name of the error is the answer. */
  readonly trying: (definition: string) => Call<number | string>;
  /** A function whose result is taken as it is. */
  readonly plain: (definition: string) => Call<number>;
  /** As `plain`, in a thread of libuv's pool. The memory it is given must be kept, and not moved, until it is done. */
  readonly threaded: (definition: string) => Call<Promise<number>>;
  /** Where a buffer's memory begins, which must not be moved while anybody goes by this. */
  readonly address: (bytes: ArrayBufferView) => bigint;
  /** Calls back in every turn of the event loop in which the descriptor can be read, until the answer is closed. */
  readonly whenReadable: (fd: number, callback: () => void) => LoopHandle;
}

/** While it is referenced it keeps the event loop alive. */
export interface LoopHandle {
  ref(): void;
  unref(): void;
  close(): void;
}

function loadKoffi(): typeof Koffi {
  return createRequire(import.meta.url)('koffi') as typeof Koffi;
}

/** CRC-32 by libdeflate, ten times faster than Node's; undefined where the system does not have it. */
export function fastCrc32(): Crc32 | undefined {
  try {
    const library = loadKoffi().load('libdeflate.so.0');
    const call = library.func(
      'uint32_t libdeflate_crc32(uint32_t value, const void *bytes, size_t count)',
    ) as Call<number>;
    return (bytes, value) => call(value, bytes, bytes.length);
  } catch {
    return undefined;
  }
}

/** Of simdutf's alphabets: with padding, as Node's 'base64'. */
const STANDARD = 0;

/**
 * Base64 by simdutf, which Node itself uses and, as a program that loads addons, shows to everybody in its process;
 * undefined where it does not. The name is C++'s for binary_to_base64(const char *, size_t, char *, base64_options).
 */
export function quickBase64(): EncodeBase64 | undefined {
  try {
    const call = loadKoffi()
      .load(null)
      .func('_ZN7simdutf16binary_to_base64EPKcmPcNS_14base64_optionsE', 'size_t', [
        'const void *',
        'size_t',
        'void *',
        'uint64_t',
      ]) as Call<number>;
    return (bytes, into) => void call(bytes, bytes.length, into, STANDARD);
  } catch {
    return undefined;
  }
}

export function openLibrary(): Binding {
  const koffi = loadKoffi();
  // The name of glibc: musl has another, and lacks addclosefrom_np.
  const library = koffi.load('libc.so.6');
  const plain: Binding['plain'] = (definition) => library.func(definition) as Call<number>;
  const threaded: Binding['threaded'] = (definition) => {
    const call = library.func(definition) as unknown as ThreadedCall;
    return (...values) =>
      new Promise((resolve, reject) => {
        call.async(...values, (problem: Error | null, result: number) =>
          problem ? reject(problem) : resolve(result),
        );
      });
  };
  const trying: Binding['trying'] = (definition) => {
    const call = plain(definition);
    return (...values) => {
      for (;;) {
        const result = call(...values);
        if (result >= 0) return result;
        // Even a poll that does not wait says EINTR when a signal is pending, and SIGCHLD often is.
        const name = errnoName(koffi.errno());
        if (name !== 'EINTR') return name;
      }
    };
  };
  const failing: Binding['failing'] = (definition) => {
    const call = trying(definition);
    const name = /(\w+)\(/.exec(definition)?.[1] ?? definition;
    return (...values) => {
      const result = call(...values);
      if (typeof result === 'string') throw new PosixError(result, name);
      return result;
    };
  };
  const nothing = (): void => undefined;
  const whenReadable: Binding['whenReadable'] = (fd, callback) =>
    koffi.node.poll(fd, { readable: true }, () => {
      // Koffi calls back without a callback scope: from Node 26 on, promises behind it would wait for the next event.
      setImmediate(nothing);
      try {
        callback();
      } catch (error) {
        // Koffi would lose it, and call nobody again.
        setImmediate(() => {
          throw error;
        });
      }
    });
  const address: Binding['address'] = (bytes) => koffi.address(bytes);
  return { failing, trying, plain, threaded, address, whenReadable };
}
