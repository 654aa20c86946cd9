// Owners that share a host: what one of them does costs the others nothing that is theirs.

import { describe, expect, it } from 'vitest';
import { describeHosts, failure, startProcess } from '../support/hosts.ts';

const closed = { kind: 'closed' } as const;

describeHosts((make) => {
  describe('owners', () => {
    it('[H63] slow patterns of one owner do not come before the search of another', async () => {
      const api = await make();
      const start = (owner: string, command: string): Promise<string> =>
        startProcess(api, { command }, owner);
      const bobs = await start('bob', `printf '${'a'.repeat(60)}b'`);
      const hers = await start('alice', 'printf needle');
      await api.wait('bob', { waits: [{ id: bobs, for: [closed] }] });
      await api.wait('alice', { waits: [{ id: hers, for: [closed] }] });
      let ended = 0;
      const slow = Array.from({ length: 3 }, async () => {
        const error = await failure(api.search('bob', { id: bobs, pattern: '(a+)+$' }));
        ended += 1;
        return error.code;
      });
      const { hits } = await api.search('alice', { id: hers, pattern: 'n.*e' });
      expect([hits.length, ended < 3]).toEqual([1, true]);
      expect(await Promise.all(slow)).toEqual(Array(3).fill('pattern_too_slow'));
    });

    it('[H72] searches of waits that are over search no further: the next wait of their owner is answered', async () => {
      const api = await make();
      const id = await startProcess(api, { command: `printf '${'a'.repeat(60)}b'` }, 'bob');
      await api.wait('bob', { waits: [{ id, for: [closed] }] });
      const patterns = Array.from({ length: 8 }, (_, n) => {
        const pattern = `(a+)+${n}$`;
        return { kind: 'pattern', pattern } as const;
      });
      const waits = Array.from({ length: 100 }, () => ({ id, for: patterns }));
      expect(await api.wait('bob', { waits, timeoutMs: 0 })).toMatchObject({ timedOut: true });
      const last = { id, for: [{ kind: 'pattern' as const, pattern: 'a+b' }] };
      expect((await api.wait('bob', { waits: [last] })).met).toHaveLength(1);
    });

    it('[H65] ended processes of an owner are forgotten for its own newer ones, not for those of another', async () => {
      const api = await make({ limits: { closedCount: 4 } });
      const run = async (owner: string): Promise<string> => {
        const id = await startProcess(api, { command: 'true' }, owner);
        for (const kind of ['closed', 'settled'] as const)
          await api.wait(owner, { waits: [{ id, for: [{ kind }] }] });
        return id;
      };
      const hers = await run('alice');
      const bobs: string[] = [];
      for (let n = 0; n < 8; n += 1) bobs.push(await run('bob'));
      expect((await api.get('alice', { id: hers })).outcome).toEqual({ kind: 'exit', code: 0 });
      const left = (await api.list('bob', {})).processes.map(({ id }) => id);
      expect(left).toEqual(bobs.slice(-3).toReversed());
    });

    it('[H66] an owner below its share is admitted when another has reached the limit on processes or waits', async () => {
      const api = await make({ limits: { liveCount: 4, parkedWaits: 4 } });
      const sleep = { command: 'sleep 100' };
      const bobs = await Promise.all([1, 2, 3, 4].map(() => startProcess(api, sleep, 'bob')));
      const refused = await failure(api.start('bob', sleep));
      expect(refused).toMatchObject({ code: 'limit_reached' });
      expect(refused.message).toMatch(/"bob" has 4; its share is 4/);
      const hers = await startProcess(api, sleep, 'alice');
      expect((await failure(api.start('bob', sleep))).message).toMatch(/its share is 2/);
      // The reserve is a quarter of the limit.
      expect((await failure(api.start('carol', sleep))).code).toBe('limit_reached');

      const given = new AbortController();
      const wait = (owner: string, id = ''): Promise<unknown> =>
        api.wait(owner, { waits: [{ id, for: [closed] }] }, given.signal);
      const parked = bobs.map((id) => failure(wait('bob', id)));
      // Over a link requests are taken in their order: these have been parked before the next is looked at.
      expect((await failure(wait('bob', bobs[0]))).code).toBe('limit_reached');
      const waited = wait('alice', hers);
      await api.signal('alice', { id: hers, signal: 'KILL' });
      expect(await waited).toMatchObject({ met: [{ id: hers, met: true }] });
      given.abort();
      await Promise.all(parked);
    });

    it('[H67] the bound on all bytes holds for live processes: they give up what they printed, the largest owner first', async () => {
      const totalBytes = 4 * 1024 * 1024;
      const api = await make({ limits: { totalBytes } });
      const flood = (owner: string, bytes: number): Promise<string> =>
        startProcess(
          api,
          { command: `head -c ${bytes} /dev/zero | tr '\\0' '\\n'; echo printed; sleep 100` },
          owner,
        );
      const printed = (owner: string, id: string): Promise<unknown> =>
        api.wait(owner, { waits: [{ id, for: [{ kind: 'text', text: 'printed' }] }] });
      const hers = await flood('alice', 500_000);
      await printed('alice', hers);
      const bobs = await Promise.all([1, 2, 3, 4].map(() => flood('bob', 3_000_000)));
      for (const id of bobs) await printed('bob', id);
      // A start looks at the bound before it is admitted.
      await startProcess(api, { command: 'true' }, 'bob');
      expect((await api.health('bob', {})).journalBytes).toBeLessThanOrEqual(totalBytes);
      expect((await api.get('alice', { id: hers })).bytes).toMatchObject({ dropped: 0, lost: 0 });
      for (const id of bobs) {
        const { bytes } = await api.get('bob', { id });
        expect([bytes.total, bytes.lost]).toEqual([3_000_008, 0]);
        expect(bytes.retained + bytes.dropped).toBe(bytes.total);
        const end = await api.range('bob', { id, offset: bytes.total - 8 });
        expect(end.bytes.toString()).toBe('printed\n');
      }
    });

    it('[H67] a start is refused when live processes take all the bytes and have nothing left to give', async () => {
      const api = await make({ limits: { totalBytes: 80_000 } });
      // In one write, and so in one segment, which is the one being written: it is never dropped.
      const once = 'dd bs=20000 count=1 iflag=fullblock 2>/dev/null';
      const command = `tr '\\0' '\\n' < /dev/zero | ${once}; echo printed; sleep 100`;
      const ids = await Promise.all(
        [1, 2, 3, 4, 5].map(() =>
          startProcess(api, { command: `read _; ${command}`, stdin: 'pipe' }, 'bob'),
        ),
      );
      for (const id of ids) {
        await api.write('bob', { id, data: Buffer.from('\n') });
        await api.wait('bob', { waits: [{ id, for: [{ kind: 'text', text: 'printed' }] }] });
      }
      const refused = await failure(api.start('bob', { command: 'true' }));
      expect(refused).toMatchObject({ code: 'limit_reached' });
      expect(refused.message).toContain('"totalBytes"');
    });
  });
});
