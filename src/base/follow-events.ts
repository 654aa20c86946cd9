// Reads numbered events page by page. The next page is requested only when the consumer has taken the last one, so a
// slow consumer costs one page of memory.

interface EventsPage {
  readonly nextAfter: number;
  readonly nextOffset: number;
  readonly end: boolean;
}

export interface Position {
  /** The last event that the reader has. */
  readonly after: number;
  /** Output bytes that the reader has, if known. */
  readonly offset?: number;
}

/** `now`: ends with the first empty page, for reads that do not wait. `end`: ends with the last page. */
export async function* followEvents<P extends EventsPage>(
  read: (position: Position) => Promise<P>,
  from: Position,
  until: 'now' | 'end' = 'end',
): AsyncGenerator<P> {
  for (let position = from; ;) {
    const page = await read(position);
    yield page;
    if (page.end || (until === 'now' && page.nextAfter === position.after)) return;
    position = { after: page.nextAfter, offset: page.nextOffset };
  }
}
