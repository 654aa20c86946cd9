// kill -9 of the client, over and over, while twenty processes print: what it has noted in the end is every event of
// every process, once, in order, with the true exit code. CRASH_CYCLES sets how often.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ProcessEvent } from '../../src/protocol/event.ts';
import { decodeRecords } from '../../src/protocol/record.ts';
import { onCleanup, overKeeper, program, temporaryFolder } from '../support/hosts.ts';
import { SEED, seeded } from '../support/random.ts';
import { sized } from '../support/slow.ts';

const CYCLES = Number(process.env['CRASH_CYCLES'] ?? sized(6, 15));
const PROCESSES = 20;

describe('the client is killed', () => {
  it(
    '[X1] at any moment: no byte lost or doubled, no wrong exit code',
    { timeout: CYCLES * 20_000 },
    async () => {
      const home = temporaryFolder();
      const notes = join(temporaryFolder(), 'notes');
      mkdirSync(notes);
      const api = await overKeeper({ folder: home });
      const random = seeded(SEED);
      for (let cycle = 0; cycle < CYCLES; cycle += 1) {
        const victim = start(home, notes);
        const ended = once(victim, 'exit');
        await marks(victim, Math.floor(random() * 60));
        victim.kill('SIGKILL');
        await ended;
      }
      // Once more to the end of what is running, so that the last generation is whole too.
      const running = (await api.list('victim', { limit: 1000 })).processes.filter(
        ({ state }) => state !== 'closed',
      );
      await Promise.all(
        running.map(({ id }) => api.wait('victim', { waits: [{ id, for: [{ kind: 'closed' }] }] })),
      );
      const { processes } = await api.list('victim', { limit: 10_000 });
      const checked = readdirSync(notes).map((key) => check(key, readFileSync(join(notes, key))));
      expect(checked.filter(Boolean).length).toBeGreaterThan(CYCLES > 10 ? PROCESSES / 2 : 0);
      const keys = new Set(processes.map(({ key }) => key));
      expect(keys.size).toBe(processes.length);
    },
  );
});

function start(home: string, notes: string): ChildProcess {
  const victim = spawn(
    process.execPath,
    [program('link-victim.mjs'), home, notes, String(PROCESSES), String(SEED)],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let complaint = '';
  victim.stderr?.on('data', (chunk: Buffer) => (complaint += chunk.toString()));
  victim.once('exit', (code) => {
    if (code !== null) throw new Error(`the client ended by itself (${code}): ${complaint}`);
  });
  onCleanup(() => void victim.kill('SIGKILL'));
  return victim;
}

/** So many pages have arrived: a moment that is random and yet needs no clock. */
function marks(victim: ChildProcess, count: number): Promise<void> {
  return new Promise((resolve) => {
    let seen = 0;
    if (count === 0) resolve();
    victim.stdout?.on('data', (chunk: Buffer) => {
      seen += chunk.length;
      if (seen >= count) resolve();
    });
    victim.once('exit', () => resolve());
  });
}

/** Compares the notes about one process with what it must have printed; true when they reach its end. */
function check(key: string, bytes: Buffer): boolean {
  const whole = wholeRecords(bytes);
  let expected = 1;
  const text = { stdout: '', stderr: '' };
  let outcome: unknown;
  let closed = false;
  for (const event of whole) {
    if (event.seq !== expected)
      throw new Error(`${key}: event ${event.seq} where ${expected} was due`);
    expected += 1;
    if (event.kind === 'output' && (event.stream === 'stdout' || event.stream === 'stderr')) {
      text[event.stream] += event.data.toString();
    }
    if (event.kind === 'exited') ({ outcome } = event.body);
    closed ||= event.kind === 'closed';
  }
  const lines = text.stdout.split('\n');
  for (const [index, line] of lines.slice(0, -1).entries()) {
    if (!line.startsWith(`${key} ${index} x`))
      throw new Error(`${key}: line ${index} is "${line.slice(0, 40)}"`);
  }
  if (!closed) return false;
  let hash = SEED;
  for (const letter of key) hash = (hash * 31 + letter.charCodeAt(0)) % 1_000_003;
  expect([lines.length, outcome]).toEqual([42 + (hash % 160), { kind: 'exit', code: hash % 200 }]);
  const errors = Array.from({ length: 41 + (hash % 160) }, (_, i) => i).filter((i) => i % 7 === 0);
  expect(text.stderr).toBe(errors.map((i) => `e${i}\n`).join(''));
  return true;
}

function wholeRecords(bytes: Buffer): ProcessEvent[] {
  const events: ProcessEvent[] = [];
  try {
    for (const event of decodeRecords(bytes)) events.push(event);
  } catch {
    // The client was killed in the middle of its own note: the end is torn, and was never counted as seen.
    return events;
  }
  return events;
}
