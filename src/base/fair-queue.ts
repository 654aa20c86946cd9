// A fair queue: the next item is from the owner with the lowest accumulated cost. An owner with thousands of items, or
// with expensive ones, delays another owner only by the item in progress.

interface OwnerQueue<T> {
  readonly items: T[];
  /** Cost charged to the owner, on the queue's own scale. */
  spent: number;
}

/** The queue prunes owners without items above this number. */
const MOST_REMEMBERED = 1024;

export class FairQueue<T> {
  /** Owners that have an item. */
  private readonly queues = new Map<string, OwnerQueue<T>>();
  /** Costs of owners without an item, where they are above the floor. */
  private readonly spent = new Map<string, number>();
  /** Cost of the owner served last. A returning owner starts here: idle time earns no credit. */
  private floor = 0;
  size = 0;

  push(owner: string, item: T): void {
    const queue = this.queues.get(owner);
    this.size += 1;
    if (queue) queue.items.push(item);
    else {
      const spent = Math.max(this.floor, this.spent.get(owner) ?? 0);
      this.queues.set(owner, { items: [item], spent });
    }
  }

  /** Number of queued items of this owner. */
  count(owner: string): number {
    return this.queues.get(owner)?.items.length ?? 0;
  }

  /** Takes the next item among the owners that `may` be served, and charges its owner 1. */
  shift(may: (owner: string) => boolean = () => true): T | undefined {
    let next: [string, OwnerQueue<T>] | undefined;
    for (const entry of this.queues)
      if ((!next || entry[1].spent < next[1].spent) && may(entry[0])) next = entry;
    if (!next) return undefined;
    const [owner, queue] = next;
    this.floor = queue.spent;
    queue.spent += 1;
    const item = queue.items.shift();
    this.size -= 1;
    if (queue.items.length === 0) this.leave(owner, queue.spent);
    return item;
  }

  /** Adds the cost of a served item beyond the 1 that `shift` charged. */
  charge(owner: string, cost: number): void {
    const queue = this.queues.get(owner);
    if (queue) queue.spent += cost;
    else this.leave(owner, Math.max(this.floor, this.spent.get(owner) ?? 0) + cost);
  }

  /** Returns false if the item is not queued. */
  delete(owner: string, item: T): boolean {
    const queue = this.queues.get(owner);
    const index = queue?.items.indexOf(item) ?? -1;
    if (!queue || index < 0) return false;
    queue.items.splice(index, 1);
    this.size -= 1;
    if (queue.items.length === 0) this.leave(owner, queue.spent);
    return true;
  }

  /** Removes and returns all items, or those of one owner. */
  clear(owner?: string): T[] {
    if (owner !== undefined) {
      const queue = this.queues.get(owner);
      if (!queue) return [];
      this.size -= queue.items.length;
      this.leave(owner, queue.spent);
      return queue.items;
    }
    const all = Array.from(this.queues.values(), ({ items }) => items).flat();
    this.queues.clear();
    this.size = 0;
    return all;
  }

  private leave(owner: string, spent: number): void {
    this.queues.delete(owner);
    this.spent.set(owner, spent);
    if (this.spent.size <= MOST_REMEMBERED) return;
    for (const [name, charged] of this.spent) if (charged <= this.floor) this.spent.delete(name);
  }
}
