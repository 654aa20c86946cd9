import { describe, expect, it } from 'vitest';
import { FairTurns } from './fair-turns.ts';

function turns(options: { atOnce: number; perOwner: number; mostWaiting: number }): FairTurns {
  const refuse = (): Error => new Error('refused');
  return new FairTurns({ ...options, refuse, givenUp: () => new Error('given up') });
}

/** Work that notes when it begins and ends on request. */
class Work {
  readonly begun: string[] = [];
  private readonly ends = new Map<string, () => void>();
  private readonly of: FairTurns;

  constructor(of: FairTurns) {
    this.of = of;
  }

  ask(name: string, signal?: AbortSignal): Promise<string> {
    const act = (): Promise<string> =>
      new Promise((resolve) => {
        this.begun.push(name);
        this.ends.set(name, () => resolve(name));
      });
    return this.of.run(name.slice(0, 1), act, signal);
  }

  async end(name: string, promise: Promise<unknown>): Promise<void> {
    this.ends.get(name)?.();
    await promise;
  }
}

describe('turns', () => {
  it('[SV30] owners take turns, however early and often one of them asked', async () => {
    const work = new Work(turns({ atOnce: 1, perOwner: 1, mostWaiting: 10 }));
    const names = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1'];
    const asked = new Map(names.map((name) => [name, work.ask(name)]));
    for (let n = 0; n < names.length; n += 1) {
      await Promise.resolve();
      const name = work.begun[n] ?? '';
      await work.end(name, asked.get(name) ?? Promise.resolve());
    }
    expect(work.begun).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4']);
  });

  it('[SV30] the running and the waiting work of one owner is limited', async () => {
    const work = new Work(turns({ atOnce: 3, perOwner: 2, mostWaiting: 1 }));
    const [a1, a2, a3] = ['a1', 'a2', 'a3'].map((name) => work.ask(name));
    await expect(work.ask('a4')).rejects.toThrow('refused');
    const b1 = work.ask('b1');
    await Promise.resolve();
    expect(work.begun).toEqual(['a1', 'a2', 'b1']);
    await work.end('a1', a1 ?? b1);
    await Promise.resolve();
    expect(work.begun).toEqual(['a1', 'a2', 'b1', 'a3']);
    for (const [name, promise] of Object.entries({ a2, a3, b1 }))
      await work.end(name, promise ?? b1);
  });

  it('[SV30] an aborted caller leaves the queue', async () => {
    const work = new Work(turns({ atOnce: 1, perOwner: 1, mostWaiting: 1 }));
    const first = work.ask('a1');
    const control = new AbortController();
    const second = work.ask('a2', control.signal);
    control.abort();
    await expect(second).rejects.toThrow('given up');
    await expect(work.ask('a3', control.signal)).rejects.toThrow('given up');
    const third = work.ask('a4');
    await work.end('a1', first);
    await Promise.resolve();
    await work.end('a4', third);
    expect(work.begun).toEqual(['a1', 'a4']);
  });

  it('[SV30] failed work ends its turn too', async () => {
    const own = turns({ atOnce: 1, perOwner: 1, mostWaiting: 1 });
    const failing = own.run('a', () => Promise.reject(new Error('broken')));
    const next = own.run('b', async () => 'done');
    await expect(failing).rejects.toThrow('broken');
    expect(await next).toBe('done');
  });
});

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

it('[H64] owners take turns, so that a start waits for few starts of another owner', async () => {
  const gate = new FairTurns({ perLoop: 4 });
  const order: string[] = [];
  const start = async (owner: string): Promise<void> => {
    await gate.pass(owner);
    order.push(owner);
  };
  const bobs = Array.from({ length: 40 }, () => start('bob'));
  const hers = start('alice');
  await hers;
  expect(order.filter((owner) => owner === 'bob').length).toBeLessThan(9);
  await Promise.all(bobs);
  expect(order).toHaveLength(41);
});

it('[H64] starts that never finish block no other owner', async () => {
  const gate = new FairTurns({ perLoop: 4, perOwner: 2 });
  await gate.pass('bob');
  await gate.pass('bob');
  let third = false;
  const late = Promise.resolve(gate.pass('bob')).then(() => (third = true));
  for (let n = 0; n < 20; n += 1) {
    await gate.pass('alice');
    gate.done('alice');
  }
  await nextTurn();
  expect(third).toBe(false);
  gate.done('bob');
  await late;
});

it('[SV30] no work begins while the gate is closed', async () => {
  let isOpen = false;
  const own = new FairTurns({ isOpen: () => isOpen });
  let begun = 0;
  const both = ['a', 'b'].map((owner) => own.run(owner, async () => (begun += 1)));
  await nextTurn();
  expect(begun).toBe(0);
  isOpen = true;
  own.next();
  await Promise.all(both);
  expect(begun).toBe(2);
});
