// The C library, opened through koffi: the only file that knows koffi. posix.ts and posix-spawn.ts say what is called.

import { createRequire } from 'node:module';
import { constants } from 'node:os';

import type * as Koffi from 'koffi';

export class PosixError extends Error {
  /** "ENOENT" */
  readonly errno: string;

  constructor(errno: string, call: string) {
    super(`${call}: ${errno}`);
    this.name = 'PosixError';
    this.errno = errno;
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
export type Call = (...values: unknown[]) => number;
export type Binder = (definition: string) => Call;

export interface Binding {
  /** A function that reports failure through errno: throws. */
  readonly failing: Binder;
  /** A function whose result is taken as it is. */
  readonly plain: Binder;
  /** Name of the error that the last call left. */
  readonly errno: () => string;
}

export function openLibrary(): Binding {
  const koffi = createRequire(import.meta.url)('koffi') as typeof Koffi;
  // The name of glibc: musl has another, and lacks addclosefrom_np.
  const library = koffi.load('libc.so.6');
  const plain: Binder = (definition) => library.func(definition) as Call;
  const errno = () => errnoName(koffi.errno());
  const failing: Binder = (definition) => {
    const call = plain(definition);
    const name = /(\w+)\(/.exec(definition)?.[1] ?? definition;
    return (...values) => {
      const result = call(...values);
      if (result < 0) throw new PosixError(errno(), name);
      return result;
    };
  };
  return { failing, plain, errno };
}
