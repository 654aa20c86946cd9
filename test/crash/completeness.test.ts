// Not a byte of a burst is lost, on pipes and on terminals, and no child holds more than its three descriptors. Also:
// whatever ignores, stops or escapes is ended. COMPLETENESS_RUNS and ESCAPEES set how often.

import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { HostApi } from '../../src/protocol/host-api.ts';
import { OWNER, outputText, overKeeper, pages, startProcess, waitFor } from '../support/hosts.ts';
import { sized } from '../support/slow.ts';

const RUNS = Number(process.env['COMPLETENESS_RUNS'] ?? sized(8, 20));
const BIG_RUNS = Number(process.env['BIG_RUNS'] ?? 1);
const ESCAPEES = Number(process.env['ESCAPEES'] ?? 10);
const closed = { kind: 'closed' } as const;

/** A burst whose every byte is known: numbered, so that a hole or a repetition shows. */
function burst(bytes: number, newline: string): { script: string; digest: string } {
  const line = (index: number): string => String(index).padStart(8, '0');
  const lines = Math.ceil(bytes / 9);
  const hash = createHash('sha256');
  for (let index = 0; index < lines; index += 1) hash.update(line(index) + newline);
  const script = `$b = ""; for $i (0..${lines - 1}) { $b .= sprintf("%08d\\n", $i); if (length($b) > 60000) { print $b; $b = "" } } print $b;`;
  return { script, digest: hash.digest('hex') };
}

async function digestOf(api: HostApi, id: string): Promise<string> {
  const hash = createHash('sha256');
  const { events, pages: read } = await pages(api, id, 4 * 1024 * 1024);
  expect(read.every((page) => page.missed === undefined)).toBe(true);
  for (const event of events) if (event.kind === 'output') hash.update(event.data);
  return hash.digest('hex');
}

describe('completeness', () => {
  for (const streams of ['merged', 'pty'] as const) {
    const newline = streams === 'pty' ? '\r\n' : '\n';
    for (const bytes of [36, 10_000, 128_000]) {
      it(
        `[X4] ${RUNS} bursts of ${bytes} bytes (${streams}): none lost`,
        { timeout: 3_600_000 },
        async () => {
          const api = await overKeeper();
          const { script, digest } = burst(bytes, newline);
          for (let run = 0; run < RUNS; run += 1) {
            const id = await startProcess(api, { argv: ['perl', '-e', script], streams });
            await waitFor(api, id, closed);
            expect(await digestOf(api, id)).toBe(digest);
          }
        },
      );
    }

    it(`[X5] ${BIG_RUNS} times 20 MB (${streams}): none lost`, { timeout: 3_600_000 }, async () => {
      const api = await overKeeper();
      const { script, digest } = burst(20_000_000, newline);
      for (let run = 0; run < BIG_RUNS; run += 1) {
        const id = await startProcess(api, { argv: ['perl', '-e', script], streams });
        await waitFor(api, id, closed);
        expect(await digestOf(api, id)).toBe(digest);
      }
    });
  }

  it('[X6] every child holds exactly 0, 1 and 2, whatever else is open', async () => {
    const api = await overKeeper();
    for (let index = 0; index < 10; index += 1) {
      const streams = (['pty', 'merged', 'separate'] as const)[index % 3] ?? 'pty';
      await startProcess(api, { command: 'sleep 1000', streams, stdin: 'pipe' });
      for (const other of ['pty', 'merged', 'separate'] as const) {
        const id = await startProcess(api, { command: 'ls /proc/$$/fd', streams: other });
        await waitFor(api, id, closed);
        const fds = (await outputText(api, id)).trim().split(/\s+/);
        expect(fds).toEqual(['0', '1', '2']);
      }
    }
  });
});

describe('escapees', () => {
  it(
    `[X7] ${ESCAPEES} families that ignore, stop, leave the group and fork twice are ended, none left`,
    { timeout: 3_600_000 },
    async () => {
      const api = await overKeeper();
      const families = [
        'trap "" TERM INT HUP; echo up; while :; do sleep 1; done',
        'sleep 1000 & kill -STOP $!; echo up; kill -STOP $$',
        'setsid sh -c "trap \\"\\" TERM; echo up; while :; do sleep 1; done" & sleep 1000',
        '(setsid sh -c "(trap \\"\\" TERM; echo up; while :; do sleep 1; done) &" &) ; exit 0',
        'env -i setsid sh -c "echo up; sleep 1000" & sleep 1000',
      ];
      for (let index = 0; index < ESCAPEES; index += 1) {
        const command = families[index % families.length] ?? '';
        const id = await startProcess(api, { command });
        await waitFor(api, id, { kind: 'text', text: 'up' });
        const answer = await api.signal(OWNER, { id, signal: 'terminate', graceMs: 30 });
        expect([command, answer.survivors]).toEqual([command, []]);
        await waitFor(api, id, { kind: 'settled' });
        await waitFor(api, id, closed);
      }
    },
  );
});
