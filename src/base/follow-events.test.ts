import { describe, expect, it } from 'vitest';
import { followEvents, type Position } from './follow-events.ts';

interface TestPage {
  readonly nextAfter: number;
  readonly nextOffset: number;
  readonly end: boolean;
}

/** Pages of two events and ten bytes each; says what it was asked. */
function journal(lastSeq: number, ended: boolean) {
  const asked: Position[] = [];
  const read = async (position: Position): Promise<TestPage> => {
    asked.push(position);
    const nextAfter = Math.min(lastSeq, position.after + 2);
    return { nextAfter, nextOffset: nextAfter * 5, end: ended && nextAfter === lastSeq };
  };
  return { asked, read };
}

describe('following events', () => {
  it('[T40] it continues after each page until the last one', async () => {
    const { asked, read } = journal(5, true);
    const seen: number[] = [];
    for await (const page of followEvents(read, { after: 1 })) seen.push(page.nextAfter);
    expect(seen).toEqual([3, 5]);
    expect(asked).toEqual([{ after: 1 }, { after: 3, offset: 15 }]);
  });

  it('[T40] with "now" it ends at the first empty page', async () => {
    const { asked, read } = journal(3, false);
    const seen: number[] = [];
    for await (const page of followEvents(read, { after: 0 }, 'now')) seen.push(page.nextAfter);
    expect(seen).toEqual([2, 3, 3]);
    expect(asked).toHaveLength(3);
  });

  it('[T40] it requests no page before the last one is taken, and none after its consumer stops', async () => {
    const { asked, read } = journal(9, true);
    for await (const page of followEvents(read, { after: 0 })) {
      expect(asked).toHaveLength(page.nextAfter / 2);
      if (page.nextAfter === 4) break;
    }
    expect(asked).toHaveLength(2);
  });

  it('[T40] an error of a read ends it', async () => {
    const broken = followEvents(() => Promise.reject(new Error('gone')), { after: 0 });
    await expect(broken.next()).rejects.toThrow('gone');
  });
});
