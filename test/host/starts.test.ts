// Ids, keys and what a start, a wait and a reader may count on, where several callers meet.

import { closeSync, openSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { FakeClock } from '../support/fake-clock.ts';
import {
  describeHosts,
  failure,
  inProcess,
  onCleanup,
  OWNER,
  startProcess,
  waitFor,
} from '../support/hosts.ts';

const closed = { kind: 'closed' } as const;

describeHosts((make) => {
  it('[H45] names are left out by globs, however many stars these have', async () => {
    const api = await make();
    const id = await startProcess(api, {
      command: 'env',
      environment: {
        inherit: 'none',
        set: { ['a'.repeat(200)]: '1', KEPT_1: '2' },
        only: [`${'*a'.repeat(40)}*b`, 'kept_?'],
      },
    });
    await waitFor(api, id, closed);
    const { text } = await api.text(OWNER, { id });
    expect(text).toContain('KEPT_1=2\n');
    expect(text).not.toContain('aaaa');
    const long = { set: { ['a'.repeat(100_000)]: '1' }, only: [`*${'a'.repeat(500)}b`] };
    const error = await failure(api.start(OWNER, { command: 'env', environment: long }));
    expect([error.code, error.message]).toEqual([
      'invalid_input',
      'start: "environment.only": the patterns and the names are too long to be compared.',
    ]);
  });

  it('[H48] a start with a key and an id holds both while it is under way', async () => {
    const api = await make();
    const both = { command: 'sleep 100', key: 'k', id: 'x' };
    const [first, byId, byKey, equal] = await Promise.allSettled([
      api.start(OWNER, both),
      api.start(OWNER, { command: 'sleep 99', id: 'x' }),
      api.start(OWNER, { command: 'sleep 98', key: 'k' }),
      api.start(OWNER, { command: 'sleep 100', id: 'x' }),
    ]);
    expect(first).toMatchObject({ value: { attached: false, process: { id: 'x', key: 'k' } } });
    expect(byId).toMatchObject({ reason: { code: 'id_taken' } });
    expect(byKey).toMatchObject({ reason: { code: 'key_conflict' } });
    expect(equal).toMatchObject({ value: { attached: true, process: { id: 'x' } } });
    expect((await api.list(OWNER, {})).total).toBe(1);
  });

  it('[H48] what is asked of an id while its start is under way waits for that start, key or not', async () => {
    const api = await make();
    const [, waited] = await Promise.all([
      api.start(OWNER, { command: 'exit 3', key: 'k', id: 'x' }),
      api.wait(OWNER, { waits: [{ id: 'x', for: [{ kind: 'exit' }] }] }),
    ]);
    expect(waited.met[0]?.process.outcome).toEqual({ kind: 'exit', code: 3 });
  });

  it('[H47] an id that two owners chose is ambiguous to everyone, and plain to each of them', async () => {
    const api = await make();
    await api.start('alice', { command: 'sleep 100', id: 'same' });
    await api.start('bob', { command: 'sleep 100', id: 'same' });
    const calls = [
      () => api.get('*', { id: 'same' }),
      () => api.signal('*', { id: 'same', signal: 'SIGKILL' }),
      () => api.remove('*', { id: 'same', force: true }),
    ];
    for (const call of calls) expect((await failure(call())).code).toBe('ambiguous');
    expect((await api.get('bob', { id: 'same' })).owner).toBe('bob');
    await api.remove('bob', { id: 'same', force: true });
    expect((await api.get('*', { id: 'same' })).owner).toBe('alice');
  });

  it('[H50] whoever waits for or reads a process that is removed is told that it is not found', async () => {
    const api = await make();
    const { process } = await api.start(OWNER, { command: 'echo ready; exec sleep 100' });
    const { id, pid } = process;
    await waitFor(api, id, { kind: 'text', text: 'ready' });
    // Held by us, its output stays open when all of its processes have ended.
    const held = openSync(`/proc/${pid}/fd/1`, 'w');
    onCleanup(() => closeSync(held));
    const { nextAfter } = await api.read(OWNER, { id, after: 0 });
    const conditions = [
      closed,
      { kind: 'growth', after: 1_000_000 },
      { kind: 'text', text: 'never' },
      { kind: 'pattern', pattern: 'nev+er' },
      { kind: 'silence', forMs: 3_600_000 },
    ] as const;
    const waits = [
      ...conditions.map((each) => api.wait(OWNER, { waits: [{ id, for: [each] }] })),
      api.wait(OWNER, { waits: [{ id, for: [...conditions] }], mode: 'all' }),
      api.read(OWNER, { id, after: nextAfter + 1000, waitMs: 3_600_000 }),
      api.text(OWNER, { id, waitMs: 3_600_000, drainMs: 3_600_000 }),
    ].map(failure);
    await waitFor(api, id, { kind: 'growth', after: 1 });
    await api.remove(OWNER, { id, force: true });
    for (const wait of waits) expect((await wait).code).toBe('not_found');
    expect((await api.health(OWNER, {})).parkedWaits).toBe(0);
  });

  it('[H90] a process removed in the turn in which it is read is read whole or not found, never in part', async () => {
    const api = await make();
    const wrong = new Set<string>();
    for (const bytes of [10, 300_000]) {
      const id = await startProcess(api, { command: `yes | head -c ${bytes}; echo the end` });
      await waitFor(api, id, { kind: 'settled' });
      const questions = [
        async () => (await api.read(OWNER, { id, maxBytes: 1_000_000 })).records.toString(),
        async () =>
          (await api.range(OWNER, { id, offset: 0, maxBytes: 1_000_000 })).bytes.toString(),
        async () => (await api.text(OWNER, { id, maxBytes: 100_000 })).text,
        async () => (await api.search(OWNER, { id, pattern: 'the end' })).hits[0]?.line,
      ];
      const whole = await Promise.all(questions.map((ask) => ask()));
      // More than one connection may have under way: the last of them wait for their turn.
      const asked = [1, 2, 3].flatMap(() =>
        questions.map(async (ask, index) => {
          const [answer] = await Promise.allSettled([ask()]);
          if (answer.status === 'rejected')
            expect(answer.reason).toMatchObject({ code: 'not_found' });
          else if (answer.value !== whole[index]) wrong.add(`${bytes} bytes, question ${index}`);
        }),
      );
      await api.remove(OWNER, { id });
      await Promise.all(asked);
    }
    expect([...wrong]).toEqual([]);
  });
});

describe('in process', () => {
  it('[H37] an equal start that is made again waits no longer than the first would have', async () => {
    const clock = new FakeClock();
    const api = await inProcess({ clock });
    const spec = { command: 'sleep 1000', key: 'once' };
    const { process } = await api.start(OWNER, spec);
    clock.advance(60_000);
    const again = await api.start(OWNER, { ...spec, waitMs: 60_000, settleMs: 60_000 });
    expect(again).toMatchObject({ attached: true, process: { id: process.id, state: 'running' } });
  });

  it('[H49] last words are waited for by the monotonic clock, wherever the wall clock jumps', async () => {
    const clock = new FakeClock();
    const api = await inProcess({ clock });
    const id = await startProcess(api, {
      command: 'exec 3<&0; { read _; echo last words; } <&3 & exit 0',
      stdin: 'pipe',
    });
    await waitFor(api, id, { kind: 'exit' });
    clock.wallOffsetMs += 3_600_000;
    const text = api.text(OWNER, { id, drainMs: 5000 });
    await api.write(OWNER, { id, data: Buffer.from('go\n') });
    expect((await text).text).toBe('last words\n');
  });
});
