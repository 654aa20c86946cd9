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
type Field = (typeof FIELDS)[number];
const PLACES = Object.fromEntries(FIELDS.map((field, at) => [field, at])) as Record<Field, number>;
const WORD = 8;
/** Whatever is not asked for is -1 or 0. */
const NOTHING = BigInt64Array.from(FIELDS, (field) =>
  ['input', 'group', 'uid', 'gid', 'domain', 'ready'].includes(field) ? -1n : 0n,
);
/** What a field points to. */
type Part = readonly [field: Field, bytes: Uint8Array];

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
  /** Keeps memory alive that only native code refers to. */
  const inUse = new Set<object>();

  return {
    /** As `spawn` of posix-spawn.ts. */
    async spawnFenced(spawn: FencedSpawn, here: boolean): Promise<number> {
      const { now, threaded } = (library ??= load());
      const request = requestOf(spawn, address);
      const given = [request, spawn.file, spawn.argv, spawn.env];
      inUse.add(request);
      try {
        const pid = here ? now(...given) : await threaded(...given);
        if (pid > 0) return pid;
        throw new PosixError(errnoName(-pid), STEPS[Number(request[PLACES.step])] ?? 'clone');
      } finally {
        inUse.delete(request);
      }
    },
  };
}

/** With all that it points to in one block, because asking for an address takes longer than filling it. */
function requestOf({ stdio, fence, cwd }: FencedSpawn, address: Binding['address']): BigInt64Array {
  const parts = [['folder', cText(cwd)] as const, ...partsOf(stdio, fence)];
  const sizes = parts.map(([, bytes]) => Math.ceil(bytes.length / WORD) * WORD);
  const head = NOTHING.byteLength;
  // V8 may move the memory of a small typed array, but not that of an ArrayBuffer.
  const block = new ArrayBuffer(sizes.reduce((all, size) => all + size, head));
  const request = new BigInt64Array(block);
  request.set(NOTHING);
  const start = address(request);
  let at = head;
  for (const [index, [field, bytes]] of parts.entries()) {
    new Uint8Array(block, at).set(bytes);
    request[PLACES[field]] = start + BigInt(at);
    if (field === 'filter') request[at / WORD + 1] = start + BigInt(at + FILTER_HEAD);
    at += sizes[index] ?? 0;
  }
  const put = (field: Field, value: number | undefined): void => {
    if (value !== undefined) request[PLACES[field]] = BigInt(value);
  };
  if (!('terminal' in stdio)) {
    put('input', stdio.input);
    put('output', stdio.output);
    put('errors', stdio.errors);
  }
  put('group', fence.group);
  put('limitCount', fence.limits?.length);
  put('uid', fence.user?.uid);
  put('gid', fence.user?.gid);
  put('groupCount', fence.user?.groups.length);
  put('dropsPrivileges', fence.dropsPrivileges === true ? 1 : 0);
  put('domain', fence.domain);
  put('ready', fence.ready);
  if (fence.ignoresSignals === true)
    request[PLACES.ignoredSignals] = BigInt.asIntN(64, ENDING_SIGNALS);
  return request;
}

function partsOf(stdio: PipeStdio | TerminalStdio, { limits, user, filter }: Fence): Part[] {
  const parts: Part[] = [];
  if ('terminal' in stdio) parts.push(['terminal', cText(stdio.terminal)]);
  if (limits && limits.length > 0) parts.push(['limits', limitWords(limits)]);
  if (user && user.groups.length > 0)
    parts.push(['groups', new Uint8Array(Uint32Array.from(user.groups).buffer)]);
  if (filter) parts.push(['filter', filterProgram(filter)]);
  return parts;
}

function limitWords(limits: NonNullable<Fence['limits']>): Uint8Array {
  const words = new BigUint64Array(limits.length * 3);
  for (const [at, { resource, soft, hard }] of limits.entries()) {
    words[at * 3] = BigInt(resource);
    words[at * 3 + 1] = BigInt(soft);
    words[at * 3 + 2] = BigInt(hard);
  }
  return new Uint8Array(words.buffer);
}

function cText(text: string): Uint8Array {
  return Buffer.from(`${text}\0`);
}

const FILTER_HEAD = 2 * WORD;

/** struct sock_fprog: how many instructions of 8 bytes, and where; behind it, these. */
function filterProgram(filter: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(FILTER_HEAD + filter.length);
  new DataView(bytes.buffer).setUint16(0, filter.length / WORD, true);
  bytes.set(filter, FILTER_HEAD);
  return bytes;
}
