// A queue that serves owners in turn: the next item is of the owner that has been served least, by cost. So an owner with
// thousands of items, or with expensive ones, delays another owner's item by no more than what is under way.

interface Line<T> {
  readonly items: T[];
  /** What the owner was charged, on the queue's own scale. */
  spent: number;
}

/** Owners without an item are remembered up to this number before the queue looks which of them can be let go. */
const MOST_REMEMBERED = 1024;

export class FairQueue<T> {
  /** Owners that have an item. */
  private readonly lines = new Map<string, Line<T>>();
  /** What owners without an item were charged, where it is above the floor. */
  private readonly spent = new Map<string, number>();
  /** What the owner served last had been charged: an owner that was away has saved up nothing. */
  private floor = 0;
  size = 0;

  push(owner: string, item: T): void {
    const line = this.lines.get(owner);
    this.size += 1;
    if (line) line.items.push(item);
    else {
      const spent = Math.max(this.floor, this.spent.get(owner) ?? 0);
      this.lines.set(owner, { items: [item], spent });
    }
  }

  /** How many items of this owner wait. */
  count(owner: string): number {
    return this.lines.get(owner)?.items.length ?? 0;
  }

  /** The next item of those owners that `may` be served; its owner is charged one for it. */
  shift(may: (owner: string) => boolean = () => true): T | undefined {
    let next: [string, Line<T>] | undefined;
    for (const entry of this.lines)
      if ((!next || entry[1].spent < next[1].spent) && may(entry[0])) next = entry;
    if (!next) return undefined;
    const [owner, line] = next;
    this.floor = line.spent;
    line.spent += 1;
    const item = line.items.shift();
    this.size -= 1;
    if (line.items.length === 0) this.leave(owner, line.spent);
    return item;
  }

  /** What serving an item has cost beyond one. */
  charge(owner: string, cost: number): void {
    const line = this.lines.get(owner);
    if (line) line.spent += cost;
    else this.leave(owner, Math.max(this.floor, this.spent.get(owner) ?? 0) + cost);
  }

  /** Takes an item out; false when it is not there. */
  delete(owner: string, item: T): boolean {
    const line = this.lines.get(owner);
    const index = line?.items.indexOf(item) ?? -1;
    if (!line || index < 0) return false;
    line.items.splice(index, 1);
    this.size -= 1;
    if (line.items.length === 0) this.leave(owner, line.spent);
    return true;
  }

  /** Takes all items out, or those of one owner. */
  clear(owner?: string): T[] {
    if (owner !== undefined) {
      const line = this.lines.get(owner);
      if (!line) return [];
      this.size -= line.items.length;
      this.leave(owner, line.spent);
      return line.items;
    }
    const all = Array.from(this.lines.values(), ({ items }) => items).flat();
    this.lines.clear();
    this.size = 0;
    return all;
  }

  private leave(owner: string, spent: number): void {
    this.lines.delete(owner);
    this.spent.set(owner, spent);
    if (this.spent.size <= MOST_REMEMBERED) return;
    for (const [name, charged] of this.spent) if (charged <= this.floor) this.spent.delete(name);
  }
}
