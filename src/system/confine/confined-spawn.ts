// Starts a program under a fence, with the library native/spawn.c: posix_spawn cannot put a child into its cgroup, limit it,
// or give it another user.

import { fileURLToPath } from 'node:url';

import type { Fence } from '../../protocol/confinement/confinement.ts';
import { type Binding, errnoName, PosixError } from '../posix-library.ts';
import type { PipeStdio, TerminalStdio } from '../posix-spawn.ts';

/** Architectures that the library is built for. */
const BUILT = ['x64', 'arm64'];

/** What is missing, for a person. */
export function nativeProblem(): string | undefined {
  if (BUILT.includes(process.arch)) return undefined;
  return `native/spawn.c is not built for ${process.arch}`;
}

/** The program native/begin.c. */
export function beginProgram(): string {
  return nativeFile(`begin-${process.arch}`);
}

function nativeFile(name: string): string {
  return fileURLToPath(new URL(`../../../native/${name}`, import.meta.url));
}

/** Fields of `struct request` in native/spawn.c, in its order. */
const FIELDS = [
  'input',
  'output',
  'errors',
  'terminal',
  'folder',
  'group',
  'limits',
  'limitCount',
  'uid',
  'gid',
  'groups',
  'groupCount',
  'dropsPrivileges',
  'domain',
  'filter',
  'ignoredSignals',
  'usualScheduling',
  'ready',
  'error',
  'step',
] as const;
type Request = Partial<Record<(typeof FIELDS)[number], bigint>>;
type Point = (bytes: ArrayBufferView) => bigint;

/** What failed, by `step`. */
const STEPS = [
  'clone',
  'stdio',
  'chdir',
  'setrlimit',
  'setuid',
  'no_new_privs',
  'landlock',
  'seccomp',
  'posix_spawn',
];

/** Signals that end a program by default. Not SIGCHLD (17): ignored, it would hide the ends of children. */
const ENDING_SIGNALS = ~((1n << 16n) | (1n << 8n) | (1n << 18n)) & ((1n << 64n) - 1n);

export interface FencedSpawn {
  readonly file: string;
  readonly argv: readonly (string | null)[];
  readonly env: BigUint64Array;
  readonly cwd: string;
  readonly fence: Fence;
  readonly stdio: PipeStdio | TerminalStdio;
}

export function bindConfinedSpawn({ native, address }: Binding) {
  let library: ReturnType<Binding['native']> | undefined;
  const load = (): ReturnType<Binding['native']> => {
    return native(
      nativeFile(`spawn-${process.arch}.so`),
      'int hf_spawn(void *request, const char *file, const char **argv, void *env)',
    );
  };
  /** Keeps memory alive that only the request points to. */
  const inUse = new Set<object>();

  const requestOf = (spawn: FencedSpawn, kept: object[]): BigInt64Array => {
    const point: Point = (bytes) => {
      kept.push(bytes);
      return address(bytes);
    };
    const values: Request = {
      ...stdioOf(spawn.stdio, point),
      ...fenceOf(spawn.fence, point),
      folder: point(cText(spawn.cwd)),
    };
    const request = new BigInt64Array(new ArrayBuffer(8 * FIELDS.length));
    for (const [at, field] of FIELDS.entries())
      request[at] = BigInt.asIntN(64, values[field] ?? 0n);
    return request;
  };

  return {
    /** As `spawn` of posix-spawn.ts. */
    async spawnFenced(spawn: FencedSpawn, here: boolean): Promise<number> {
      const { now, threaded } = (library ??= load());
      const kept: object[] = [];
      const request = requestOf(spawn, kept);
      const given = [request, spawn.file, spawn.argv, spawn.env];
      kept.push(request);
      inUse.add(kept);
      try {
        const pid = here ? now(...given) : await threaded(...given);
        if (pid > 0) return pid;
        throw new PosixError(errnoName(-pid), STEPS[Number(request.at(-1))] ?? 'clone');
      } finally {
        inUse.delete(kept);
      }
    },
  };
}

function stdioOf(stdio: PipeStdio | TerminalStdio, point: Point): Request {
  if ('terminal' in stdio) return { terminal: point(cText(stdio.terminal)) };
  const { input = -1, output, errors } = stdio;
  return { input: BigInt(input), output: BigInt(output), errors: BigInt(errors) };
}

function fenceOf(fence: Fence, point: Point): Request {
  const { user, filter } = fence;
  const limits = (fence.limits ?? []).flatMap(({ resource, soft, hard }) => [resource, soft, hard]);
  const groups = Uint32Array.from(user?.groups ?? []);
  return {
    group: BigInt(fence.group ?? -1),
    limits: limits.length === 0 ? 0n : point(fixed(BigUint64Array.from(limits, BigInt))),
    limitCount: BigInt(limits.length / 3),
    uid: BigInt(user?.uid ?? -1),
    gid: BigInt(user?.gid ?? -1),
    groups: groups.length === 0 ? 0n : point(fixed(groups)),
    groupCount: BigInt(groups.length),
    dropsPrivileges: fence.dropsPrivileges === true ? 1n : 0n,
    domain: BigInt(fence.domain ?? -1),
    filter: filter ? point(program(filter, point)) : 0n,
    ignoredSignals: fence.ignoresSignals === true ? ENDING_SIGNALS : 0n,
    ready: BigInt(fence.ready ?? -1),
  };
}

/** In an ArrayBuffer of its own, which V8 does not move. */
function fixed<T extends BigUint64Array | Uint32Array>(values: T): T {
  const copy = new ArrayBuffer(values.byteLength);
  const same = values instanceof BigUint64Array ? new BigUint64Array(copy) : new Uint32Array(copy);
  (same as BigUint64Array).set(values as BigUint64Array);
  return same as T;
}

function cText(text: string): Uint8Array {
  const bytes = new Uint8Array(new ArrayBuffer(Buffer.byteLength(text) + 1));
  bytes.set(Buffer.from(text));
  return bytes;
}

/** struct sock_fprog: how many instructions of 8 bytes, and where. */
function program(filter: Uint8Array, point: Point): BigUint64Array {
  const code = new Uint8Array(new ArrayBuffer(filter.length));
  code.set(filter);
  return fixed(BigUint64Array.from([BigInt(filter.length / 8), point(code)]));
}
