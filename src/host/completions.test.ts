import { describe, expect, it } from 'vitest';
import type { Completion } from '../protocol/host-api.ts';
import { Completions } from './completions.ts';

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
    // Whoever cannot see it is not waited for.
    feed.processForgotten('two');
    expect(feed.has('two')).toBe(false);
  });

  it('[SV10] that nobody has acknowledged stay', () => {
    const feed = new Completions();
    feed.add('one', { ...ended, number: feed.next });
    feed.processForgotten('one');
    expect(numbers(feed, 'late')).toEqual([1]);
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
});
