// The files that one connection holds open: fs/open, fs/readBlock, fs/writeBlock, fs/close. A handle stays on its file
// whatever happens to the name, and ends with the connection.

import type { FileHandle } from 'node:fs/promises';
import { fill } from './read.ts';
import { refused, SystemError } from './error.ts';
import { openToRead, openToWrite, type PathOptions } from './opened-path.ts';
import type { BytePath } from './uri.ts';
import { RpcError, rpcCodes } from '../rpc.ts';

const MAX_HANDLES = 128;
const MAX_ID_BYTES = 32;
const MAX_BLOCK_BYTES = 1024 * 1024;

interface OpenFile {
  readonly file: FileHandle;
  readonly mode: 'read' | 'replace';
}

export class FileHandles {
  /** Undefined while the file is being opened: the id is already taken. */
  private readonly files = new Map<string, OpenFile | undefined>();
  private closed = false;

  async open(
    id: string,
    mode: OpenFile['mode'],
    at: { path: BytePath; options: PathOptions },
  ): Promise<void> {
    checkId(id);
    if (this.files.has(id)) throw refused(`file handle \`${id}\` already exists`);
    if (this.files.size >= MAX_HANDLES)
      throw refused(`at most ${MAX_HANDLES} file handles may be open per connection`);
    this.files.set(id, undefined);
    try {
      const file = await (mode === 'read' ? openToRead : openToWrite)(at.path, at.options);
      if (mode === 'replace') await truncate(file);
      this.files.set(id, { file, mode });
      // The connection closed while the file was being opened.
      if (this.closed) await this.close(id);
    } catch (error) {
      this.files.delete(id);
      throw error;
    }
  }

  /** Less than `length` only at the end of the file. */
  async read(id: string, offset: number, length: number): Promise<{ chunk: Buffer; eof: boolean }> {
    const { file, mode } = this.find(id);
    if (length < 1 || length > MAX_BLOCK_BYTES)
      throw refused(`file read block length must be between 1 and ${MAX_BLOCK_BYTES}`);
    return this.closeOnError(id, async () => {
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

  /** An unknown handle counts as closed. Waits for pending reads and writes. */
  async close(id: string): Promise<void> {
    checkId(id);
    const files = this.files.get(id);
    if (!files) return;
    this.files.delete(id);
    await files.file.close();
  }

  /** When the connection ends. */
  async closeAll(): Promise<void> {
    this.closed = true;
    await Promise.all([...this.files.keys()].map((id) => this.close(id)));
  }

  private find(id: string): OpenFile {
    checkId(id);
    const files = this.files.get(id);
    if (files) return files;
    throw new RpcError(rpcCodes.notFound, `unknown file handle \`${id}\``);
  }

  /** A file that failed to be read is closed; a failed write may succeed later. */
  private async closeOnError<T>(id: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      await this.close(id);
      throw error;
    }
  }
}

async function truncate(file: FileHandle): Promise<void> {
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
