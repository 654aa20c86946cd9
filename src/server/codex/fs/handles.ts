// The files that one connection holds open: fs/open, fs/readBlock, fs/writeBlock, fs/close. A handle goes on meaning the
// file it was opened on, whatever happens to its name, and ends with the connection at the latest.

import type { FileHandle } from 'node:fs/promises';
import { fill } from './read.ts';
import { refused, SystemError } from './error.ts';
import { openToRead, openToWrite, type Way } from './place.ts';
import type { BytePath } from './uri.ts';
import { RpcError, rpcCodes } from '../rpc.ts';

const MAX_HANDLES = 128;
const MAX_ID_BYTES = 32;
const MAX_BLOCK_BYTES = 1024 * 1024;

interface Held {
  readonly file: FileHandle;
  readonly mode: 'read' | 'replace';
}

export class FileHandles {
  /** Undefined while it is being opened: the name is taken from then on. */
  private readonly held = new Map<string, Held | undefined>();
  private closed = false;

  async open(id: string, mode: Held['mode'], at: { path: BytePath; way: Way }): Promise<void> {
    checkId(id);
    if (this.held.has(id)) throw refused(`file handle \`${id}\` already exists`);
    if (this.held.size >= MAX_HANDLES)
      throw refused(`at most ${MAX_HANDLES} file handles may be open per connection`);
    this.held.set(id, undefined);
    try {
      const file = await (mode === 'read' ? openToRead : openToWrite)(at.path, at.way);
      if (mode === 'replace') await truncated(file);
      this.held.set(id, { file, mode });
      // The connection has gone while the file was being opened.
      if (this.closed) await this.close(id);
    } catch (error) {
      this.held.delete(id);
      throw error;
    }
  }

  /** Less than `length` only at the end of the file. */
  async read(id: string, offset: number, length: number): Promise<{ chunk: Buffer; eof: boolean }> {
    const { file, mode } = this.find(id);
    if (length < 1 || length > MAX_BLOCK_BYTES)
      throw refused(`file read block length must be between 1 and ${MAX_BLOCK_BYTES}`);
    return this.orClose(id, async () => {
      if (mode !== 'read') throw new SystemError('EBADF');
      const buffer = Buffer.allocUnsafe(length);
      const filled = await fill(file, buffer, offset);
      return { chunk: buffer.subarray(0, filled), eof: filled < length };
    });
  }

  async write(id: string, offset: number, bytes: Buffer): Promise<void> {
    checkId(id);
    if (bytes.length < 1 || bytes.length > MAX_BLOCK_BYTES)
      throw refused(`file write block length must be between 1 and ${MAX_BLOCK_BYTES}`);
    const { file, mode } = this.find(id);
    if (mode !== 'replace') throw new SystemError('EBADF');
    for (let done = 0; done < bytes.length;) {
      const { bytesWritten } = await file.write(bytes, done, undefined, offset + done);
      done += bytesWritten;
    }
  }

  /** An unknown handle is closed already. Waits for what is being read or written. */
  async close(id: string): Promise<void> {
    checkId(id);
    const held = this.held.get(id);
    if (!held) return;
    this.held.delete(id);
    await held.file.close();
  }

  /** With the connection. */
  async closeAll(): Promise<void> {
    this.closed = true;
    await Promise.all([...this.held.keys()].map((id) => this.close(id)));
  }

  get size(): number {
    return this.held.size;
  }

  private find(id: string): Held {
    checkId(id);
    const held = this.held.get(id);
    if (held) return held;
    throw new RpcError(rpcCodes.notFound, `unknown file handle \`${id}\``);
  }

  /** A file that could not be read once is not asked again; one that could not be written may find room later. */
  private async orClose<T>(id: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      await this.close(id);
      throw error;
    }
  }
}

async function truncated(file: FileHandle): Promise<void> {
  try {
    await file.truncate(0);
  } catch (error) {
    await file.close();
    throw error;
  }
}

function checkId(id: string): void {
  if (Buffer.byteLength(id) > MAX_ID_BYTES)
    throw refused(`file handle ID must not exceed ${MAX_ID_BYTES} bytes`);
}
