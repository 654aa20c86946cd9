// Limits that only the host watches, where the kernel has no means: the family is ended, the answer says by what, and nobody
// else is harmed.

import { describe, expect, it } from 'vitest';
import type { HostApi } from '../../src/protocol/host-api.ts';
import type { StartSpec } from '../../src/protocol/operations.ts';
import { OWNER, overKeeper, startProcess, waitFor } from '../support/hosts.ts';

const MiB = 1024 * 1024;
const hog = `${process.execPath} -e 'const all = []; setInterval(() => all.push(Buffer.alloc(20e6, 1)), 20)'`;

async function ended(host: HostApi, spec: StartSpec) {
  const id = await startProcess(host, { enforce: 'best', ...spec });
  await waitFor(host, id, { kind: 'settled' });
  return host.get(OWNER, { id });
}

describe('a watched limit', () => {
  it('[CT8] of memory ends all processes of a start that use too much together, and no other', async () => {
    const host = await overKeeper({ groups: false });
    const beside = await startProcess(host, { command: 'sleep 1000' });
    const info = await ended(host, {
      command: `${hog} & ${hog} & wait`,
      limits: { memory: 300 * MiB },
    });
    expect(info.confinement).toEqual({ memory: { limit: 300 * MiB, by: 'watch' } });
    expect(info.outcome).toEqual({ kind: 'signal', signal: 'SIGKILL', by: 'memory limit' });
    expect(info.causes).toEqual([
      {
        kind: 'memory_limit',
        victims: expect.any(Number) as number,
        sawBytes: expect.any(Number) as number,
      },
    ]);
    expect((await host.get(OWNER, { id: beside })).state).toBe('running');
  });

  it('[CT8] of processes ends a fork bomb; what was forked meanwhile too', async () => {
    // Where the kernel refuses to fork, nothing is watched, and what was forked before goes on.
    const withGroups = await overKeeper();
    const { pids } = await withGroups.enforcement(OWNER, {});
    const host = pids.by === 'watch' ? withGroups : await overKeeper({ groups: false });
    // Bounded, in case that nothing ends it.
    const bomb =
      'f() { if [ $1 -gt 0 ]; then f $(($1 - 1)) & f $(($1 - 1)) & fi; sleep 1000; }; f 6';
    const info = await ended(host, { command: bomb, limits: { pids: 20 } });
    expect(info.confinement?.pids?.by).toBe('watch');
    expect(info.causes?.[0]?.kind).toBe('pids_limit');
    expect(info.settled).toBe(true);
  });
});
