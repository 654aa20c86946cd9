// Landlock rulesets: which folders a program can write to, and optionally read. Works without privileges, in containers too.
// A ruleset can only allow, so nothing below an allowed folder can be closed; chmod and utimes are not governed.

import { closeSync, constants, openSync } from 'node:fs';

import type { Binding } from '../posix-library.ts';

/** The same numbers on every architecture. */
const [CREATE_RULESET, ADD_RULE] = [444, 445];
const VERSION_FLAG = 1;
const PATH_BENEATH = 1;
const O_PATH = 0o10000000;

const [EXECUTE, WRITE_FILE, READ_FILE, READ_FOLDER] = [1n << 0n, 1n << 1n, 1n << 2n, 1n << 3n];
/** Removing and making of every kind of entry (bits 4 to 12), moving to another folder (13), truncating (14). */
const CHANGE = 0x7ff0n;
const WRITE = WRITE_FILE | CHANGE;
const READ = EXECUTE | READ_FILE | READ_FOLDER;
/** On a file the rights of a folder are refused. */
const FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | (1n << 14n);
/** Before this version truncating was not governed, so that "read-only" was not. Linux 6.2. */
export const LEAST_LANDLOCK = 3;

export interface FolderRule {
  readonly path: string;
  readonly access: 'read' | 'write';
  readonly isFolder: boolean;
}

export function bindLandlock({ trying, failing }: Binding) {
  const definition = 'long syscall(long number, ...)';
  const [attempt, syscall] = [trying(definition), failing(definition)];

  return {
    /** The version of Landlock's interface; 0 if there is none. */
    landlockVersion(): number {
      const version = attempt(
        CREATE_RULESET,
        'void *',
        null,
        'size_t',
        0,
        'uint32_t',
        VERSION_FLAG,
      );
      return typeof version === 'number' ? version : 0;
    },
    /** The descriptor of a ruleset. `readable`: reading is restricted to the rules too. */
    landlockRuleset(rules: readonly FolderRule[], readable: boolean): number {
      const handled = BigUint64Array.of(readable ? WRITE | READ : WRITE);
      const ruleset = syscall(CREATE_RULESET, 'void *', handled, 'size_t', 8, 'uint32_t', 0);
      try {
        for (const rule of rules) addRule(ruleset, rule, readable);
      } catch (error) {
        closeSync(ruleset);
        throw error;
      }
      return ruleset;
    },
  };

  function addRule(
    ruleset: number,
    { path, access, isFolder }: FolderRule,
    readable: boolean,
  ): void {
    const rights = (access === 'write' ? WRITE : 0n) | (readable ? READ : 0n);
    const allowed = isFolder ? rights : rights & FILE_RIGHTS;
    if (allowed === 0n) return;
    const fd = openSync(path, O_PATH | constants.O_RDONLY);
    try {
      // struct landlock_path_beneath_attr: packed, the rights and the descriptor.
      const attribute = Buffer.alloc(16);
      attribute.writeBigUInt64LE(allowed);
      attribute.writeInt32LE(fd, 8);
      syscall(ADD_RULE, 'int', ruleset, 'int', PATH_BENEATH, 'void *', attribute, 'uint32_t', 0);
    } finally {
      closeSync(fd);
    }
  }
}
