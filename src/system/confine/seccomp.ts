// A seccomp filter that leaves a program no network: it can make unix sockets only. Works where no namespace can be made.

/** AUDIT_ARCH, and the numbers of two calls, on the architectures that native/spawn.c is built for. */
const CALLS = {
  x64: { architecture: 0xc000003e, socket: 41 },
  arm64: { architecture: 0xc00000b7, socket: 198 },
} as const;
/** io_uring makes sockets without calling socket(). */
const IO_URING_SETUP = 425;
/** x86-64: numbers from here on are the x32 variants of the same calls. */
const X32 = 0x40000000;
const AF_UNIX = 1;
const [EPERM, ENOSYS] = [1, 38];
const [ALLOW, ERRNO] = [0x7fff0000, 0x00050000];
const [LOAD, JUMP_EQUAL, JUMP_AT_LEAST, RETURN] = [0x20, 0x15, 0x35, 0x06];
/** Places in struct seccomp_data. */
const [NUMBER, ARCHITECTURE, FIRST_ARGUMENT] = [0, 4, 16];

/** Undefined on other architectures. */
export function noNetworkFilter(): Uint8Array | undefined {
  const calls =
    process.arch === 'x64' || process.arch === 'arm64' ? CALLS[process.arch] : undefined;
  if (!calls) return undefined;
  // Each row: code, how far to jump if true and if false, operand.
  return assemble([
    [LOAD, 0, 0, ARCHITECTURE],
    [JUMP_EQUAL, 0, 7, calls.architecture],
    [LOAD, 0, 0, NUMBER],
    [JUMP_AT_LEAST, 5, 0, X32],
    [JUMP_EQUAL, 5, 0, IO_URING_SETUP],
    [JUMP_EQUAL, 0, 2, calls.socket],
    [LOAD, 0, 0, FIRST_ARGUMENT],
    [JUMP_EQUAL, 0, 1, AF_UNIX],
    [RETURN, 0, 0, ALLOW],
    [RETURN, 0, 0, ERRNO | EPERM],
    [RETURN, 0, 0, ERRNO | ENOSYS],
  ]);
}

function assemble(rows: readonly (readonly [number, number, number, number])[]): Uint8Array {
  const program = Buffer.alloc(rows.length * 8);
  for (const [at, [code, ifTrue, ifFalse, operand]] of rows.entries()) {
    program.writeUInt16LE(code, at * 8);
    program.writeUInt8(ifTrue, at * 8 + 2);
    program.writeUInt8(ifFalse, at * 8 + 3);
    program.writeUInt32LE(operand >>> 0, at * 8 + 4);
  }
  return program;
}
