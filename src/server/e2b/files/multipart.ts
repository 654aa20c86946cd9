// Reads a multipart/form-data body part by part, without holding more than one chunk: files may be of any size.

import { invalid } from '../messages.ts';

export interface Part {
  /** The whole name, with slashes. */
  readonly filename: string;
  readonly name: string;
  /** To be read to its end before the next part. */
  readonly content: AsyncIterable<Buffer>;
}

const MAX_HEAD_BYTES = 16 * 1024;

export function boundaryOf(contentType: string): string {
  const [, quoted, plain] =
    /;\s*boundary=(?:"([^"]{1,200})"|([^\s;]{1,200}))/i.exec(contentType) ?? [];
  const boundary = quoted ?? plain;
  if (boundary === undefined) throw invalid('the multipart body has no boundary');
  return boundary;
}

export async function* readParts(
  body: AsyncIterable<Buffer>,
  boundary: string,
): AsyncGenerator<Part> {
  const reader = new PartReader(body[Symbol.asyncIterator](), boundary);
  await reader.skipPreamble();
  for (let head = await reader.head(); head !== undefined; head = await reader.head()) {
    const disposition = /^content-disposition:\s*form-data(.*)$/im.exec(head)?.[1] ?? '';
    const content = reader.content();
    yield { name: field(disposition, 'name'), filename: field(disposition, 'filename'), content };
    // What the consumer left unread.
    for await (const _ of content);
  }
}

/** Browsers and fetch escape quotes and line breaks with a percent sign. */
function field(disposition: string, name: string): string {
  const [, value = ''] = new RegExp(`[;\\s]${name}="([^"]*)"`, 'i').exec(disposition) ?? [];
  return value.replaceAll(/%(22|0D|0A)/gi, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
}

class PartReader {
  private readonly source: AsyncIterator<Buffer>;
  /** Every boundary but the first follows a line break; one is put before the body, so that the first does, too. */
  private readonly delimiter: Buffer;
  private buffer: Buffer = Buffer.from('\r\n');
  private ended = false;

  constructor(source: AsyncIterator<Buffer>, boundary: string) {
    this.source = source;
    this.delimiter = Buffer.from(`\r\n--${boundary}`);
  }

  async skipPreamble(): Promise<void> {
    for await (const _ of this.content());
  }

  /** The header lines of the next part; undefined after the last. */
  async head(): Promise<string | undefined> {
    while (this.buffer.length < 2) await this.more();
    if (this.buffer.toString('latin1', 0, 2) === '--') return undefined;
    for (;;) {
      const end = this.buffer.indexOf('\r\n\r\n');
      if (end >= 0) {
        const head = this.buffer.toString('utf8', 0, end);
        this.buffer = this.buffer.subarray(end + 4);
        return head;
      }
      if (this.buffer.length > MAX_HEAD_BYTES) throw invalid('the head of a part is too long');
      await this.more();
    }
  }

  /** Up to the next boundary, which is consumed. */
  async *content(): AsyncGenerator<Buffer> {
    for (;;) {
      const at = this.buffer.indexOf(this.delimiter);
      const sure = at >= 0 ? at : Math.max(0, this.buffer.length - this.delimiter.length + 1);
      const piece = this.buffer.subarray(0, sure);
      this.buffer = this.buffer.subarray(at >= 0 ? at + this.delimiter.length : sure);
      if (piece.length > 0) yield piece;
      if (at >= 0) return;
      await this.more();
    }
  }

  private async more(): Promise<void> {
    const next = this.ended ? undefined : await this.source.next();
    if (!next || next.done === true) {
      this.ended = true;
      throw invalid('the multipart body ends too early');
    }
    this.buffer = this.buffer.length === 0 ? next.value : Buffer.concat([this.buffer, next.value]);
  }
}
