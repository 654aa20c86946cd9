// The cursor of one caller: how far it has read each process, and how often it read nothing new.

interface ReadPosition {
  readonly offset: number;
  readonly emptyReads: number;
}

/** Above this, the least recently read process is forgotten. */
const MAX_PROCESSES = 1000;

export class CallerCursor {
  private readonly positions = new Map<string, ReadPosition>();

  /** Output bytes that this caller has read; 0 if none. */
  offset(id: string): number {
    return this.positions.get(id)?.offset ?? 0;
  }

  /** Reads in a row without new output. */
  emptyReads(id: string): number {
    return this.positions.get(id)?.emptyReads ?? 0;
  }

  /** Records that everything before `offset` was returned. */
  markRead(id: string, offset: number): void {
    const before = this.positions.get(id);
    const nothingNew = before !== undefined && offset <= before.offset;
    const emptyReads = nothingNew ? before.emptyReads + 1 : 0;
    this.positions.delete(id);
    this.positions.set(id, { offset: Math.max(offset, before?.offset ?? 0), emptyReads });
    const [oldest] = this.positions.keys();
    if (this.positions.size > MAX_PROCESSES && oldest !== undefined) this.positions.delete(oldest);
  }
}
