// kill -9 of the keeper while it writes: every record that a client was given is there afterwards, the same; nothing
// torn is served; processes are lost, never running and never exit 0; their descendants can be ended.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { randomId } from '../../src/base/ids.ts';
import { connectKeeper } from '../../src/keeper/connect.ts';
import type { KeeperLink } from '../../src/keeper/link.ts';
import type { ProcessEvent } from '../../src/protocol/event.ts';
import { decodeRecords } from '../../src/protocol/record.ts';
import {
  failure,
  onCleanup,
  outputText,
  OWNER,
  pages,
  stopKeeper,
  temporaryFolder,
  waitFor,
} from '../support/hosts.ts';
import { sameEvent } from '../support/journals.ts';
import { SEED, seeded } from '../support/random.ts';
import { sized } from '../support/slow.ts';

const CYCLES = Number(process.env['KEEPER_KILLS'] ?? sized(4, 12));

/** Small, so that floods reach it, and reading everything back is quick. */
const LIMITS = JSON.stringify({ journalBytes: 8 * 1024 * 1024, journalHeadBytes: 2 * 1024 * 1024 });

interface Reader {
  readonly id: string;
  readonly acknowledged: ProcessEvent[];
  readonly done: Promise<void>;
}

async function keeperAt(home: string): Promise<KeeperLink> {
  return connectKeeper({
    home,
    env: process.env,
    keeperArgs: ['--idle-ms', '60000', '--limits', LIMITS],
  });
}

describe('the keeper is killed', () => {
  it(
    '[X2] at random moments of writing: all that was acknowledged is readable, nothing torn is served',
    { timeout: 3_600_000 },
    async () => {
      const home = temporaryFolder();
      onCleanup(() => stopKeeper(home));
      const random = seeded(SEED);
      let compared = 0;
      for (let cycle = 0; cycle < CYCLES; cycle += 1) {
        const link = await keeperAt(home);
        const killAfter = 1 + Math.floor(random() * 120);
        const { enough, onPage } = counter(killAfter);
        const readers = await Promise.all(
          commands(random).map((command) => follow(link, command, onPage)),
        );
        await enough;
        process.kill(link.keeper.pid, 'SIGKILL');
        await link.ended;
        await Promise.all(readers.map(({ done }) => done));
        compared += await compare(await keeperAt(home), readers);
      }
      expect(compared).toBeGreaterThan(CYCLES);
    },
  );

  it('[X8] a program whose start was never recorded is ended by the next keeper, with its empty journal', async () => {
    const home = temporaryFolder();
    const serial = randomId();
    const journals = join(home, 'journals');
    mkdirSync(journals, { mode: 0o700 });
    writeFileSync(join(journals, `${serial}.0001.hfj`), '', { mode: 0o600 });
    const env = { ...process.env, HOLDFAST_PROCESS: serial };
    const untold = spawn('sleep', ['600'], { env, detached: true, stdio: 'ignore' });
    const bystander = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' });
    onCleanup(() => void bystander.kill('SIGKILL'));
    const ended = once(untold, 'exit');
    await Promise.all([once(untold, 'spawn'), once(bystander, 'spawn')]);
    const link = await keeperAt(home);
    onCleanup(() => stopKeeper(home));
    expect(await ended).toEqual([null, 'SIGKILL']);
    expect(bystander.exitCode).toBe(null);
    expect((await link.list(OWNER, {})).total).toBe(0);
    expect(readdirSync(journals)).toEqual([]);
  });

  it('[X3] what it had started is found by its mark and can be ended; finished processes and the feed are as before', async () => {
    const home = temporaryFolder();
    onCleanup(() => stopKeeper(home));
    const first = await keeperAt(home);
    const finished = await first.start(OWNER, { command: 'echo kept; exit 3', key: 'k' });
    await waitFor(first, finished.process.id, { kind: 'closed' });
    const told = await first.completions(OWNER, { waitMs: 60_000 });
    await first.acknowledge(OWNER, { numbers: told.completions.map(({ number }) => number) });
    const survivor = await first.start(OWNER, {
      command: 'setsid sleep 1000 >/dev/null 2>&1 & echo up; sleep 1000',
    });
    await waitFor(first, survivor.process.id, { kind: 'text', text: 'up' });
    process.kill(first.keeper.pid, 'SIGKILL');
    await first.ended;
    expect((await failure(first.get(OWNER, { id: finished.process.id }))).code).toBe('keeper_lost');

    const second = await keeperAt(home);
    expect(second.keeper.pid).not.toBe(first.keeper.pid);
    const again = await second.start(OWNER, { command: 'echo kept; exit 3', key: 'k' });
    expect(again).toMatchObject({
      attached: true,
      process: { outcome: { kind: 'exit', code: 3 }, state: 'closed' },
    });
    const lost = await second.get(OWNER, { id: survivor.process.id });
    expect(lost).toMatchObject({ state: 'lost', settled: false, outcome: { kind: 'lost' } });
    const { completions } = await second.completions(OWNER, {});
    expect(completions).toMatchObject([{ id: survivor.process.id, outcome: { kind: 'lost' } }]);
    const answer = await second.signal(OWNER, { id: survivor.process.id, signal: 'terminate' });
    expect(answer.survivors).toEqual([]);
    expect(answer.signalled.length).toBeGreaterThanOrEqual(2);
    expect((await second.get(OWNER, { id: survivor.process.id })).settled).toBe(true);
    expect(
      (await failure(second.signal(OWNER, { id: survivor.process.id, signal: 'kill' }))).code,
    ).toBe('not_running');
  });

  it('[D15] a daemon of a process that had ended is not forgotten: its process is not settled, and it can be ended', async () => {
    const home = temporaryFolder();
    onCleanup(() => stopKeeper(home));
    const first = await keeperAt(home);
    const command = 'setsid sleep 1000 >/dev/null 2>&1 & echo $!';
    const { process: left } = await first.start(OWNER, { command });
    await waitFor(first, left.id, { kind: 'closed' });
    const { process: alone } = await first.start(OWNER, { command: 'true' });
    await waitFor(first, alone.id, { kind: 'settled' });
    process.kill(first.keeper.pid, 'SIGKILL');
    await first.ended;

    const second = await keeperAt(home);
    expect(await second.get(OWNER, { id: alone.id })).toMatchObject({ settled: true });
    expect(await second.get(OWNER, { id: left.id })).toMatchObject({
      state: 'closed',
      settled: false,
      outcome: { kind: 'exit', code: 0 },
    });
    const daemon = Number(await outputText(second, left.id));
    const answer = await second.signal(OWNER, { id: left.id, signal: 'terminate' });
    expect(answer).toMatchObject({ signalled: [daemon], survivors: [] });
    expect(await second.get(OWNER, { id: left.id })).toMatchObject({ settled: true });
  });
});

function counter(target: number): { enough: Promise<void>; onPage: () => void } {
  let seen = 0;
  let reached = (): void => undefined;
  const enough = new Promise<void>((resolve) => (reached = resolve));
  const onPage = (): void => {
    seen += 1;
    if (seen >= target) reached();
  };
  return { enough, onPage };
}

/** A flood, short lines, and one that ends soon. */
function commands(random: () => number): string[] {
  const lines = 1000 + Math.floor(random() * 100_000);
  return [
    'yes "a line of the flood, again and again"',
    `seq 1 ${lines}; exit 5`,
    'i=0; while :; do echo short $i; i=$((i+1)); done',
  ];
}

async function follow(link: KeeperLink, command: string, onPage: () => void): Promise<Reader> {
  const { process: started } = await link.start(OWNER, { command });
  const acknowledged: ProcessEvent[] = [];
  const read = async (): Promise<void> => {
    for (let after = 0, end = false; !end;) {
      const page = await link.read(OWNER, {
        id: started.id,
        after,
        // Large enough for the flood to be read from the files, and the short lines through the socket.
        maxBytes: 1024 * 1024,
        waitMs: 60_000,
      });
      acknowledged.push(...decodeRecords(page.records));
      ({ nextAfter: after, end } = page);
      onPage();
    }
  };
  return { id: started.id, acknowledged, done: read().catch(() => undefined) };
}

/** Answers how many acknowledged events were compared. */
async function compare(link: KeeperLink, readers: readonly Reader[]): Promise<number> {
  let compared = 0;
  for (const { id, acknowledged } of readers) {
    const info = await link.get(OWNER, { id });
    const { events, pages: read } = await pages(link, id, 1024 * 1024);
    const bySeq = new Map(events.map((event) => [event.seq, event]));
    const dropped = read.flatMap((page) => (page.missed ? [page.missed] : []));
    expect(dropped.every(({ reason }) => reason === 'limit')).toBe(true);
    compared += acknowledged.length;
    for (const event of acknowledged) {
      const kept = bySeq.get(event.seq);
      if (!kept && dropped.some(({ fromSeq, toSeq }) => event.seq >= fromSeq && event.seq <= toSeq))
        continue;
      if (!kept || !sameEvent(kept, event))
        throw new Error(`event ${event.seq} of ${id} is not what was read`);
    }
    const exited = acknowledged.find((event) => event.kind === 'exited');
    if (exited?.kind === 'exited') expect(info.outcome).toEqual(exited.body.outcome);
    else expect(['lost', 'closed']).toContain(info.state);
    if (info.state === 'closed') expect(info.outcome).toEqual({ kind: 'exit', code: 5 });
    await link.remove(OWNER, { id, force: true });
  }
  await link.close();
  return compared;
}
