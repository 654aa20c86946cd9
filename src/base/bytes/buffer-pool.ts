// A pool of large buffers, so that a thousand idle journals hold none.

export class BufferPool {
  readonly size: number;
  private readonly free: Buffer[] = [];
  private readonly keep: number;

  constructor(size: number, keep: number) {
    this.size = size;
    this.keep = keep;
  }

  take(): Buffer {
    return this.free.pop() ?? Buffer.allocUnsafeSlow(this.size);
  }

  give(buffer: Buffer): void {
    if (buffer.length === this.size && this.free.length < this.keep) this.free.push(buffer);
  }
}
