// Loads the C library and faster libraries for checksums and base64 through koffi. No other file uses koffi. posix.ts and
// posix-spawn.ts define the calls.

import { createRequire } from 'node:module';
import { constants } from 'node:os';

import type * as Koffi from 'koffi';

import type { EncodeBase64 } from '../base/bytes/base64.ts';
import type { Crc32 } from '../base/bytes/crc32.ts';
import { watchByKoffi, watchByThread, type WatchReadable } from './loop-poll.ts';

export class PosixError extends Error {
  /** "ENOENT" */
  readonly errno: string;
  readonly call: string;

  constructor(errno: string, call: string) {
    super(`${call}: ${errno}`);
    this.name = 'PosixError';
    this.errno = errno;
    this.call = call;
  }
}

/** Result of a query; undefined if the kernel refuses it. */
export function tryQuery<T>(ask: () => T): T | undefined {
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

/** koffi calls the last argument back on the main thread after a pool thread has made the call. */
interface ThreadedCall {
  readonly async: (...values: unknown[]) => void;
}

export interface Binding {
  /** For a function that reports failure by a negative result and errno: throws a PosixError. */
  readonly failing: (definition: string) => Call<number>;
  /** The same, but returns the name of the errno. */
  readonly trying: (definition: string) => Call<number | string>;
  /** For a function whose result needs no check. */
  readonly plain: (definition: string) => Call<number>;
  /** As `plain`, in a thread of libuv's pool. Memory arguments must stay alive and unmoved until it returns. */
  readonly threaded: (definition: string) => Call<Promise<number>>;
  /** A function of a library of ours, in this thread and in libuv's pool. */
  readonly native: (
    file: string,
    definition: string,
  ) => { readonly now: Call<number>; readonly threaded: Call<Promise<number>> };
  /** Address of a buffer's memory, which must not move while the address is used. */
  readonly address: (bytes: ArrayBufferView) => bigint;
  /** Two ways to watch a descriptor from the event loop; the second works without koffi's poll handle. */
  readonly watch: { readonly koffi: WatchReadable; readonly thread: WatchReadable };
}

function loadKoffi(): typeof Koffi {
  return createRequire(import.meta.url)('koffi') as typeof Koffi;
}

/** CRC-32 of libdeflate, ten times faster than Node's; undefined if the system does not have it. */
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

/** simdutf's alphabet with padding, as Node's 'base64'. */
const STANDARD = 0;

/**
 * Base64 of simdutf, which Node contains and exports because it loads addons; undefined if it does not. The symbol is
 * the mangled C++ name of binary_to_base64(const char *, size_t, char *, base64_options).
 */
export function fastBase64(): EncodeBase64 | undefined {
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
  // glibc's name. The loader of musl takes itself for every name that begins with "libc.".
  const library = koffi.load('libc.so.6');
  const plain: Binding['plain'] = (definition) => library.func(definition) as Call<number>;
  const inPool =
    (call: ThreadedCall): Call<Promise<number>> =>
    (...values) =>
      new Promise((resolve, reject) => {
        call.async(...values, (problem: Error | null, result: number) =>
          problem ? reject(problem) : resolve(result),
        );
      });
  const threaded: Binding['threaded'] = (definition) => inPool(library.func(definition));
  const native: Binding['native'] = (file, definition) => {
    const call = koffi.load(file).func(definition);
    return { now: call as Call<number>, threaded: inPool(call) };
  };
  const trying: Binding['trying'] = (definition) => {
    const call = plain(definition);
    return (...values) => {
      for (;;) {
        const result = call(...values);
        if (result >= 0) return result;
        // Even a poll without a timeout returns EINTR if a signal is pending, as SIGCHLD often is.
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
  const watch = {
    koffi: watchByKoffi((...args) => koffi.node.poll(...args)),
    thread: watchByThread(threaded('int poll(void *fds, unsigned long count, int timeoutMs)')),
  };
  const address: Binding['address'] = (bytes) => koffi.address(bytes);
  return { failing, trying, plain, threaded, native, address, watch };
}
