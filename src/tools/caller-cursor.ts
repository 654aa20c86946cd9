// The cursor of one caller: how far it has read each process, and how often it came back for nothing.

interface Place {
  readonly offset: number;
  readonly emptyReads: number;
}

/** A caller that reads more processes than this begins the oldest anew. */
const MOST_PROCESSES = 1000;

export class CallerCursor {
  private readonly places = new Map<string, Place>();

  /** Output bytes that this caller has been shown; 0 when it was shown none. */
  offset(id: string): number {
    return this.places.get(id)?.offset ?? 0;
  }

  /** Reads in a row that brought nothing new. */
  emptyReads(id: string): number {
    return this.places.get(id)?.emptyReads ?? 0;
  }

  /** Notes that everything before `offset` was shown. */
  shown(id: string, offset: number): void {
    const before = this.places.get(id);
    const nothingNew = before !== undefined && offset <= before.offset;
    const emptyReads = nothingNew ? before.emptyReads + 1 : 0;
    this.places.delete(id);
    this.places.set(id, { offset: Math.max(offset, before?.offset ?? 0), emptyReads });
    const [oldest] = this.places.keys();
    if (this.places.size > MOST_PROCESSES && oldest !== undefined) this.places.delete(oldest);
  }
}
