// Histories: many callers over the SDK and over the keeper's socket, while server and keeper are killed, stopped and starved.
// HISTORY_OPERATIONS sets how many operations (npm run test:history), SEED their choice.

import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { httpApi } from '../../src/client/http-api.ts';
import { apiOver } from '../support/in-process-api.ts';
import { connectKeeper } from '../../src/keeper/connect.ts';
import { reconnectingHost } from '../../src/server/reconnecting-host.ts';
import { onCleanup, stopKeeper, temporaryFolder } from '../support/hosts.ts';
import { dice, SEED } from '../support/random.ts';
import { Client } from './client.ts';
import { Model } from './model.ts';
import { FAULTS, Nemesis, smallDisk, type Fault } from './nemesis.ts';

const OPERATIONS = Number(process.env['HISTORY_OPERATIONS'] ?? 2000);
const CLIENTS = 20;
const OWNERS = 5;
const DISK_BYTES = 64 * 1024 * 1024;
/** From the end of one fault to the next. */
const QUIET_OPERATIONS = 200;
/** With a stopped server and a keeper that refuses everything nobody may get an answer: then a fault ends after so long. */
const STANDSTILL_MS = 3000;
/** How far it has come is said after so many operations. */
const TOLD_EVERY = 10_000;

describe('a history of many callers', () => {
  it(
    '[X10] one start per key, each write once, completions until acknowledged, nothing taken back',
    { timeout: 7_200_000 },
    async () => {
      const home = temporaryFolder();
      const unmount = smallDisk(home, DISK_BYTES);
      if (unmount) onCleanup(unmount);
      const witness = join(temporaryFolder(), 'runs');
      mkdirSync(witness);
      onCleanup(() => stopKeeper(home));
      const model = new Model();
      const counter = new Counter();
      const keeperArgs = ['--idle-ms', '600000'];
      const link = () =>
        reconnectingHost(() => connectKeeper({ home, env: process.env, keeperArgs }));
      const host = link();
      const nemesis = new Nemesis({
        home,
        host,
        roll: dice(SEED),
        operations: (count) => counter.more(count),
        keeperKilled: () => model.keeperKilled(),
      });
      await nemesis.startServer();
      onCleanup(() => nemesis.stopServer());
      const clients = Array.from({ length: CLIENTS }, (_, n) => {
        const owner = `owner-${n % OWNERS}`;
        const socketPath = join(home, 'server.sock');
        const api =
          n % 2 === 0
            ? httpApi({ socketPath, owner, reconnectMs: 60_000 })
            : apiOver(link(), owner);
        onCleanup(() => api.close());
        return new Client({
          name: `c${n}`,
          api,
          owner,
          model,
          roll: dice(SEED * 1000 + n),
          witness,
        });
      });
      await Promise.all(clients.map((client) => client.subscribe()));
      const faults = FAULTS.filter((fault) => unmount || fault !== 'full disk');
      const working = clients.map(async (client) => {
        while (counter.count < OPERATIONS) {
          await client.step();
          counter.add();
          if (counter.count % TOLD_EVERY === 0)
            process.stdout.write(summary(model, nemesis, clients, counter.count));
        }
      });
      await Promise.all([...working, trouble(nemesis, counter, faults)]);
      await Promise.all(clients.map((client) => client.finish()));
      await Promise.all(clients.map((client) => client.drain()));
      for (const { options } of clients)
        model.untold(`${options.owner}/${options.name}`, options.owner);
      checkRuns(model, witness);
      await host.close();
      process.stdout.write(summary(model, nemesis, clients, counter.count));
      expect(model.violations.slice(0, 20)).toEqual([]);
    },
  );
});

/** Counts operations, and wakes whoever waits for more of them. */
class Counter {
  count = 0;
  private readonly waiting = new Set<{ at: number; wake: () => void }>();

  add(): void {
    this.count += 1;
    for (const each of this.waiting) if (this.count >= each.at) each.wake();
  }

  more(operations: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => each.wake(), STANDSTILL_MS);
      const wake = (): void => {
        clearTimeout(timer);
        this.waiting.delete(each);
        resolve();
      };
      const each = { at: this.count + operations, wake };
      this.waiting.add(each);
    });
  }
}

/** Every fault once, in their order, and then as the dice fall. */
async function trouble(
  nemesis: Nemesis,
  counter: Counter,
  faults: readonly Fault[],
): Promise<void> {
  const roll = dice(SEED + 7);
  for (let turn = 0; counter.count < OPERATIONS; turn += 1) {
    await counter.more(QUIET_OPERATIONS);
    await nemesis.strike(faults[turn] ?? roll.pick(faults));
  }
}

function checkRuns(model: Model, witness: string): void {
  const runs = new Map(
    readdirSync(witness).map((key) => [key, readFileSync(join(witness, key)).length / 4]),
  );
  for (const { key, id, unrecorded } of model.known) {
    const times = runs.get(key) ?? 0;
    if (times > 1 + unrecorded) model.wrong(`key ${key}: ${times} runs`);
    if (id !== undefined && times === 0 && model.keepersKilled === 0)
      model.wrong(`key ${key}: started as ${id}, and never ran`);
  }
}

function summary(
  { known, violations }: Model,
  { done }: Nemesis,
  clients: readonly Client[],
  operations: number,
): string {
  const codes = new Map<string, number>();
  for (const client of clients)
    for (const [code, count] of client.codes) codes.set(code, (codes.get(code) ?? 0) + count);
  const told = (counts: ReadonlyMap<string, number>): string =>
    [...counts].map(([name, count]) => `${name} ${count}`).join(', ');
  return `seed ${SEED}: ${operations} operations, ${known.length} processes, ${violations.length} violations; faults: ${told(done)}; refused: ${told(codes)}\n`;
}
