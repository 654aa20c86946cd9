// A journal cut at every byte and damaged at every bit: what is served afterwards is what was written, or is said to be
// missing. FULL_DAMAGE=1 takes every byte and every bit of 64 KiB; otherwise those of a part and a sample of the rest.

import { describe, expect, it } from 'vitest';
import type { ProcessEvent } from '../../src/protocol/event.ts';
import { FOLDER, makeJournal, readAll, reopen, sameEvent } from '../support/journals.ts';
import { MemoryDisk } from '../support/memory-disk.ts';

const PATH = `${FOLDER}/p1.0001.hfj`;
const full = process.env['FULL_DAMAGE'] === '1';

/** About 64 KiB: short and long output on all streams, signals, input, and something that looks like a journal. */
async function sample(finished: boolean): Promise<{ bytes: Buffer; events: ProcessEvent[] }> {
  const disk = new MemoryDisk();
  const { journal } = makeJournal({ disk });
  journal.append({ kind: 'started', body: { pid: 7, id: 'p1' } });
  for (let index = 0; disk.bytes < 65 * 1024; index += 1) {
    const text = `event ${index} ${'.'.repeat((index * 37) % 700)}\n`;
    journal.output(
      (['stdout', 'stderr', 'merged', 'pty'] as const)[index % 4] ?? 'pty',
      Buffer.from(text),
    );
    if (index % 20 === 0)
      journal.append({ kind: 'signal', body: { signal: 'SIGINT', by: 'test' } });
    if (index === 50)
      journal.output('pty', disk.files.get(PATH)?.bytes.subarray(0, 3000) ?? Buffer.alloc(0));
    await journal.visible();
  }
  journal.append({ kind: 'exited', body: { outcome: { kind: 'exit', code: 3 } } });
  if (finished) journal.appendClosed({ facts: { id: 'p1' } });
  await journal.visible();
  const { events } = await readAll(journal);
  return { bytes: Buffer.from(disk.files.get(PATH)?.bytes ?? Buffer.alloc(0)), events };
}

/** Opens the damaged file and compares all that can be read with what was written. */
async function check(
  bytes: Buffer,
  originals: ReadonlyMap<number, ProcessEvent>,
): Promise<{ seen: number; torn: number }> {
  const disk = new MemoryDisk();
  disk.files.set(PATH, { bytes });
  const { found, journal } = reopen(disk);
  const { events, missed } = await readAll(journal, 1024 * 1024);
  const lost = missed.reduce((sum, gap) => sum + gap.toSeq - gap.fromSeq + 1, 0);
  for (const event of events) {
    const original = originals.get(event.seq);
    if (!original || !sameEvent(event, original))
      throw new Error(`wrong data served for event ${event.seq}`);
  }
  const end = events.at(-1)?.seq ?? 0;
  if (events.length + lost < end)
    throw new Error(`${end - events.length - lost} events vanished silently`);
  return { seen: events.length, torn: found.kind === 'unfinished' ? found.tornBytes : 0 };
}

describe('damage', () => {
  for (const finished of [false, true]) {
    it(
      `[J11] (36, D3 of agent-tty) a journal ${finished ? 'finished' : 'unfinished'}, cut at every byte, serves a true beginning and reports the torn end`,
      { timeout: 900_000 },
      async () => {
        const { bytes, events } = await sample(finished);
        const originals = new Map(events.map((event) => [event.seq, event]));
        let last = 0;
        for (
          let length = 0;
          length <= bytes.length;
          length += full || length > bytes.length - 1024 ? 1 : 37
        ) {
          const { seen } = await check(Buffer.from(bytes.subarray(0, length)), originals);
          expect(seen).toBeGreaterThanOrEqual(last);
          last = seen;
        }
        expect(last).toBe(events.length);
      },
    );
  }

  it(
    '[J12] any flipped bit is found out: never served as good data, never a crash',
    { timeout: 3_600_000 },
    async () => {
      const { bytes, events } = await sample(true);
      const originals = new Map(events.map((event) => [event.seq, event]));
      expect(bytes.length).toBeGreaterThan(64 * 1024);
      const step = full ? 1 : 523;
      let cases = 0;
      for (let bit = 0; bit < bytes.length * 8; bit += bit < 1024 ? 1 : step) {
        const damaged = Buffer.from(bytes);
        damaged[bit >> 3] = (damaged[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        await check(damaged, originals);
        cases += 1;
      }
      expect(cases).toBeGreaterThan(full ? 524_288 : 1900);
    },
  );
});
