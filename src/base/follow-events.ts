// Reads numbered events page by page, each behind the one before. A page is asked for only when its reader has
// taken the last one, so a slow reader costs one page.

interface EventsPage {
  readonly nextAfter: number;
  readonly nextOffset: number;
  readonly end: boolean;
}

export interface Position {
  /** The last event that the reader has. */
  readonly after: number;
  /** Output bytes that it has, where that is known. */
  readonly offset?: number;
}

/** `now`: ends with the first page that brings nothing, for reads that do not wait. Otherwise with the last page. */
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
