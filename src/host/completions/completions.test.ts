import { describe, expect, it } from 'vitest';
import type { Completion } from '../../protocol/host-api.ts';
import { makeJournal, readAll } from '../../../test/support/journals.ts';
import { Completions, type FeedNote } from './completions.ts';

const ended: Omit<Completion, 'number'> = {
  id: 'x',
  owner: 'a',
  command: 'true',
  outcome: { kind: 'exit', code: 0 },
  durationMs: 1,
  bytes: 0,
  lastLines: '',
  atMs: 1,
};

function numbers(
  feed: Completions,
  subscriber: string,
  { owner = '*', after = 0 }: { owner?: string; after?: number } = {},
): number[] {
  return feed.pending({ owner, subscriber, after, limit: 10 }).map(({ number }) => number);
}

describe('completions', () => {
  it('[SV10] are kept beyond their process until every reader who has asked acknowledged them', () => {
    const feed = new Completions();
    feed.add('one', { ...ended, number: feed.next });
    expect(numbers(feed, 'webhook')).toEqual([1]);
    expect(numbers(feed, 'other', { owner: 'b' })).toEqual([]);
    feed.acknowledge('*', 'default', [1]);
    feed.processForgotten('one');
    expect(numbers(feed, 'webhook')).toEqual([1]);
    feed.add('two', { ...ended, number: feed.next });
    feed.acknowledge('*', 'webhook', [1, 2]);
    feed.acknowledge('*', 'default', [2]);
    // A subscriber that cannot see it does not count.
    feed.processForgotten('two');
    expect(feed.has('two')).toBe(false);
  });

  it('[SV10] that nobody has acknowledged stay', () => {
    const feed = new Completions();
    feed.add('one', { ...ended, number: feed.next });
    feed.processForgotten('one');
    expect(numbers(feed, 'late')).toEqual([1]);
  });

  it('[H69] beyond their number the oldest go of the owner that has most, not of another', () => {
    const feed = new Completions();
    feed.add('hers', { ...ended, owner: 'alice', number: feed.next });
    for (let n = 0; n < 4003; n += 1)
      feed.add(`his ${n}`, { ...ended, owner: 'bob', number: feed.next });
    feed.processForgotten('hers');
    for (let n = 0; n < 4003; n += 1) feed.processForgotten(`his ${n}`);
    expect(numbers(feed, 'default', { owner: 'alice' })).toEqual([1]);
    expect(numbers(feed, 'default', { owner: 'bob' })[0]).toBe(6);
  });

  it('[H69] of a process that is still there none is dropped: the next keeper would tell it again', () => {
    const feed = new Completions();
    for (let n = 0; n < 6000; n += 1) feed.add(`p${n}`, { ...ended, number: feed.next });
    for (let n = 1000; n < 6000; n += 1) feed.processForgotten(`p${n}`);
    expect(feed.has('p0') && feed.has('p999')).toBe(true);
    expect([feed.has('p1999'), feed.has('p2000')]).toEqual([false, true]);
    // Read back, only what no process was found of may go.
    const next = new Completions();
    for (let n = 0; n < 4002; n += 1)
      next.replay({
        type: 'completion',
        serial: `p${n}`,
        completion: { ...ended, number: n + 1 },
      });
    next.processesFound(new Set(['p0']));
    next.processForgotten('nobody');
    expect([next.has('p0'), next.has('p1'), next.has('p2')]).toEqual([true, false, true]);
  });

  it('[SV10] can be asked for behind a number', () => {
    const feed = new Completions();
    for (const serial of ['one', 'two', 'three']) feed.add(serial, { ...ended, number: feed.next });
    expect(numbers(feed, 's', { after: 1 })).toEqual([2, 3]);
    feed.acknowledge('*', 's', [2]);
    expect(numbers(feed, 's', { after: 1 })).toEqual([3]);
    expect(numbers(feed, 's')).toEqual([1, 3]);
  });

  it('[SV10] remember their readers when they are read back', () => {
    const feed = new Completions();
    feed.replay({
      type: 'completion',
      serial: 'one',
      completion: { ...ended, number: 1 },
    });
    feed.replay({
      type: 'completion',
      serial: 'two',
      completion: { ...ended, number: 2 },
    });
    feed.replay({ type: 'acknowledged', reader: '1:*webhook', numbers: [1] });
    feed.acknowledge('*', 'default', [1, 2]);
    feed.processForgotten('one');
    feed.processForgotten('two');
    expect([feed.has('one'), feed.has('two')]).toEqual([false, true]);
  });

  it('[SV10] wait for a reader that has only asked, also in the next keeper', async () => {
    const first = new Completions();
    const { journal } = makeJournal();
    first.recordTo(journal);
    expect(numbers(first, 'webhook')).toEqual([]);
    first.add('one', { ...ended, number: first.next });
    journal.flush();
    await journal.visible();
    const next = new Completions();
    for (const event of (await readAll(journal)).events)
      if (event.kind === 'note') next.replay(event.body as unknown as FeedNote);
    next.acknowledge('*', 'default', [1]);
    next.processForgotten('one');
    expect(numbers(next, 'webhook')).toEqual([1]);
  });

  it('[SV10] wait for a reader that has only asked, also when the feed is written anew', async () => {
    const feed = new Completions();
    expect(numbers(feed, 'webhook')).toEqual([]);
    const { journal } = makeJournal();
    feed.recordTo(journal);
    await journal.visible();
    const { events } = await readAll(journal);
    expect(events.filter(({ kind }) => kind === 'note')).toMatchObject([
      { body: { type: 'opened' } },
      { body: { type: 'acknowledged', reader: '1:*webhook', numbers: [] } },
    ]);
  });
});
