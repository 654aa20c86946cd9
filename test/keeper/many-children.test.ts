// A keeper with more children than one read of their list gives: the daemon that comes last is seen, and ended.

import { expect, it } from 'vitest';
import { isAlive, readEntry } from '../../src/system/proc-table.ts';
import { outputText, overKeeper, OWNER, startProcess, waitFor } from '../support/hosts.ts';

const LIVE = 800;

it(
  `[D21] a daemon behind ${LIVE} children of its keeper is not called settled, and stop ends it`,
  { timeout: 600_000 },
  async () => {
    const link = await overKeeper();
    for (let started = 0; started < LIVE; started += 1)
      await startProcess(link, { argv: ['sleep', '1000'] });
    const id = await startProcess(link, { command: 'setsid sleep 1000 >/dev/null 2>&1 & echo $!' });
    await waitFor(link, id, { kind: 'closed' });
    const daemon = Number(await outputText(link, id));
    // Another that leaves nobody is called settled meanwhile, so that the keeper has looked at its children since.
    const plain = await startProcess(link, { argv: ['true'] });
    await waitFor(link, plain, { kind: 'settled' });
    expect((await link.get(OWNER, { id })).settled).toBe(false);
    expect(isAlive(readEntry(daemon))).toBe(true);
    const { survivors } = await link.signal(OWNER, { id, signal: 'terminate' });
    expect(survivors).toEqual([]);
    expect(isAlive(readEntry(daemon))).toBe(false);
    expect((await link.get(OWNER, { id })).settled).toBe(true);
  },
);
