// A channel: one thing that a page follows over its WebSocket. The page grants bytes; output is sent only while some are left,
// so a page that is slow costs one piece of memory, not the output.

export interface Channel {
  readonly number: number;
  readonly gone: AbortController;
  readonly credit: ChannelCredit;
  tell(message: Record<string, unknown>): Promise<void>;
  send(bytes: Buffer): Promise<void>;
}

/** What a channel may send before the page grants more. */
const FIRST_BYTES = 512 * 1024;

export class ChannelCredit {
  private left = FIRST_BYTES;
  private wake: (() => void) | undefined;

  add(bytes: number): void {
    this.left = Math.min(this.left + bytes, FIRST_BYTES);
    if (this.left > 0) this.wake?.();
  }

  /** Waits until something may be sent; the last piece may be larger than what is left. */
  async take(bytes: number, signal: AbortSignal): Promise<void> {
    while (this.left <= 0 && !signal.aborted)
      await new Promise<void>((resolve) => {
        const go = (): void => {
          signal.removeEventListener('abort', go);
          this.wake = undefined;
          resolve();
        };
        this.wake = go;
        signal.addEventListener('abort', go);
      });
    this.left -= bytes;
  }
}

const HEAD_BYTES = 10;

/** kind 1: a log, `position` is an offset. kind 2: a screen, `position` is the number of an event. */
export function frame(kind: 1 | 2, channel: number, position: number, data: Buffer): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt8(kind, 0);
  head.writeUIntBE(channel, 1, 3);
  head.writeUIntBE(position, 4, 6);
  return Buffer.concat([head, data]);
}
