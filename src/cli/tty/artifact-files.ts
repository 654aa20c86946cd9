// Files that `tty` commands make of a terminal, and their entries beside its journal.

import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { ProcessInfo } from '../../protocol/process.ts';
import { terminalFolder } from '../../journal/terminal-folder.ts';
import type { TtyCall } from './command.ts';
import { TtyError } from './envelope.ts';
import type { Artifact } from './sessions.ts';

interface NewFile {
  readonly bytes: Buffer;
  readonly seq: number;
  readonly kind: Artifact['kind'];
  readonly name: string;
}

/** The entry is written last: a file without one is no artifact, an entry without its file does not exist. */
export function save(
  call: TtyCall,
  process: ProcessInfo,
  file: NewFile,
  metadata: Record<string, unknown>,
): { path: string; sha256: string } {
  const folder = join(terminalFolder(call.caller.home, process), 'artifacts');
  const out = call.text('out');
  const path = out === undefined ? join(folder, file.name) : resolve(call.caller.cwd, out);
  const sha256 = createHash('sha256').update(file.bytes).digest('hex');
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    mkdirSync(dirname(path), { recursive: true });
    place(path, file.bytes);
    const entry: Artifact = {
      id: randomBytes(8).toString('hex'),
      kind: file.kind,
      filename: file.name,
      sessionId: process.id,
      capturedAtSeq: file.seq,
      createdAt: new Date().toISOString(),
      sha256,
      bytes: file.bytes.length,
      metadata: { ...metadata, ...(out !== undefined && { path }) },
    };
    try {
      place(join(folder, `${entry.id}.entry.json`), Buffer.from(JSON.stringify(entry)));
    } catch (error) {
      if (out === undefined) rmSync(path, { force: true });
      throw error;
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new TtyError('STORAGE_WRITE_ERROR', `The file cannot be written: ${reason}`, { path });
  }
  return { path, sha256 };
}

function place(path: string, bytes: Buffer): void {
  const next = `${path}.${randomBytes(4).toString('hex')}.tmp`;
  writeFileSync(next, bytes, { mode: 0o600 });
  renameSync(next, path);
}
