// Sizes of messages and records: what is too large is refused by whoever sends it or written in several pieces, and a list
// of any length arrives.

import { describe, expect, it } from 'vitest';
import { EVERYONE } from '../../src/protocol/host-api.ts';
import { listAll } from '../../src/protocol/list-all.ts';
import {
  describeHosts,
  failure,
  overKeeper,
  OWNER,
  pages,
  startProcess,
  waitFor,
} from '../support/hosts.ts';

const closed = { kind: 'closed' } as const;
/** The kernel takes 128 KiB as one argument. In JSON each of these characters takes six bytes. */
const LONG_COMMAND = `: '${'\u0001'.repeat(120_000)}'`;

describeHosts((make) => {
  describe('lists', () => {
    it('[H60] rows are slim and say that they are cut; get has all of it', async () => {
      const api = await make();
      const long = await startProcess(api, { command: LONG_COMMAND });
      const short = await startProcess(api, { argv: ['echo', 'é'.repeat(900)] });
      const many = await startProcess(api, { argv: ['true', ...Array<string>(5000).fill('')] });
      const { processes } = await api.list(OWNER, {});
      const row = (id: string) => processes.find((process) => process.id === id);
      expect(row(long)).toMatchObject({ cut: true, command: `${LONG_COMMAND.slice(0, 1024)}…` });
      expect(JSON.stringify(row(long)).length).toBeLessThan(16_000);
      expect(row(many)?.argv.length).toBeLessThan(1024);
      expect(row(short)?.cut).toBeUndefined();
      const whole = await api.get(OWNER, { id: long });
      expect([whole.command === LONG_COMMAND, whole.cut]).toEqual([true, undefined]);
    });

    it('[H61] a page has at most 1,000 rows, fewer when they are large, and all pages together have each process once', async () => {
      const api = await make();
      const labels = Object.fromEntries(
        Array.from({ length: 22 }, (_, n) => [`label-${n}`, '\u0001'.repeat(4096)]),
      );
      const tooMany = {
        command: 'true',
        labels: { ...labels, a: 'x'.repeat(4096), b: 'x'.repeat(4096) },
      };
      expect((await failure(api.start(OWNER, tooMany))).code).toBe('invalid_input');
      const starts = Array.from({ length: 48 }, () =>
        startProcess(api, { command: 'true', labels }),
      );
      const ids = await Promise.all(starts);
      const first = await api.list(OWNER, {});
      expect(first.total).toBe(48);
      expect(first.processes.length).toBeLessThan(48);
      let pages = 0;
      const all = await listAll(async (filter) => {
        pages += 1;
        // A process that starts or goes between two pages makes none of the others be left out.
        if (pages === 2) {
          await startProcess(api, { command: 'true' });
          await waitFor(api, newest(ids), closed);
          await api.remove(OWNER, { id: newest(ids) });
        }
        return api.list(EVERYONE, filter);
      });
      expect(pages).toBeGreaterThan(1);
      expect(new Set(all.map(({ id }) => id))).toEqual(new Set(ids));
      expect(all).toHaveLength(48);
    });
  });
});

describeHosts((make) => {
  describe('records', () => {
    it('[H68] a large write is recorded in several events, all of them readable', async () => {
      const api = await make();
      const spec = { command: 'cat > /dev/null', stdin: 'pipe', recordInput: true } as const;
      const id = await startProcess(api, spec);
      const data = Buffer.alloc(13_000_000, 'input ');
      await api.write(OWNER, { id, data, eof: true, writeId: 'w' });
      await waitFor(api, id, closed);
      const read = await pages(api, id, 1024 * 1024);
      expect(read.pages.flatMap(({ missed }) => missed ?? [])).toEqual([]);
      const inputs = read.events.flatMap((event) =>
        event.kind === 'input' && event.body.eof !== true ? [event.body] : [],
      );
      expect(inputs.map(({ writeId, more }) => [writeId, more])).toEqual([
        ['w', true],
        ...Array.from({ length: 11 }, () => [undefined, true]),
        [undefined, undefined],
      ]);
      const typed = Buffer.concat(inputs.map((body) => Buffer.from(body.data ?? '', 'base64')));
      expect(typed.equals(data)).toBe(true);
    });

    it('[H68] what could not be recorded is refused before it is done', async () => {
      const api = await make();
      const argument = '\u0001'.repeat(120_000);
      const argv = ['true', ...Array<string>(8).fill(argument)];
      expect((await failure(api.start(OWNER, { argv }))).code).toBe('arguments_too_long');
      const id = await startProcess(api, { argv: ['sh'], streams: 'pty' });
      const command = 'x'.repeat(1024 * 1024 + 1);
      expect((await failure(api.run(OWNER, { id, command }))).code).toBe('invalid_input');
      const keys = Array<string>(3000).fill('x'.repeat(500));
      expect((await failure(api.write(OWNER, { id, keys }))).code).toBe('invalid_input');
    });
  });
});

/** The newest: it is on the first page. */
function newest(ids: readonly string[]): string {
  return ids.at(-1) ?? '';
}

describe('messages', () => {
  it('[K35] a request above the limit of a frame is refused by its sender, and the link goes on', async () => {
    const link = await overKeeper();
    const id = await startProcess(link, { command: 'cat', stdin: 'pipe' });
    const parked = link.wait(OWNER, { waits: [{ id, for: [closed] }] });
    const request = await failure(link.write(OWNER, { id, data: Buffer.alloc(33 * 1024 * 1024) }));
    expect(request.code).toBe('too_large');
    // Whole command lines of so many would be too large for one answer.
    const large = await startProcess(link, { command: LONG_COMMAND });
    const waits = Array.from({ length: 256 }, () => ({ id: large, for: [closed] }));
    const { met } = await link.wait(OWNER, { waits, mode: 'all' });
    expect([met.length, met[255]?.process.cut]).toEqual([256, true]);
    // Nobody else on the link noticed.
    await link.write(OWNER, { id, eof: true });
    expect((await parked).met).toMatchObject([{ id, met: true }]);
  });
});
