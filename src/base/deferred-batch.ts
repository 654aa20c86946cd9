// Handles queued items in one batch after a delay, so that clean-up does not delay answers.

export class DeferredBatch<T> {
  private readonly afterMs: number;
  private readonly act: (items: readonly T[]) => void;
  private readonly items: T[] = [];
  private timer: NodeJS.Timeout | undefined;

  constructor(afterMs: number, act: (items: readonly T[]) => void) {
    this.afterMs = afterMs;
    this.act = act;
  }

  get size(): number {
    return this.items.length;
  }

  /** The delay counts from the first item of the batch. */
  add(item: T): void {
    this.items.push(item);
    this.timer ??= setTimeout(() => this.flush(), this.afterMs);
  }

  flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.items.length > 0) this.act(this.items.splice(0));
  }
}
