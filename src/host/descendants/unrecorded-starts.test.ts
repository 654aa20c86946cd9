import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

import { inProcess, onCleanup, OWNER, temporaryFolder } from '../../../test/support/hosts.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { childrenOf, isAlive, readEntry } from '../../system/proc-table.ts';

/** Fails once, when a child has been started and its daemon has said so. */
class FailingClock extends FakeClock {
  daemon = 0;
  private readonly fifo: string;
  private readonly children = childrenOf(process.pid).length;

  constructor(fifo: string) {
    super();
    this.fifo = fifo;
  }

  override wallMs(): number {
    if (this.daemon === 0 && childrenOf(process.pid).length > this.children) {
      this.daemon = Number(readFileSync(this.fifo, 'utf8'));
      throw new Error('the start fails here');
    }
    return super.wallMs();
  }
}

test('[H40] a start that fails after its program began leaves nothing of it, nor of its daemon', async () => {
  const fifo = join(temporaryFolder(), 'fifo');
  execFileSync('mkfifo', [fifo]);
  const clock = new FailingClock(fifo);
  const host = await inProcess({ clock });
  onCleanup(() => {
    if (isAlive(readEntry(clock.daemon))) process.kill(clock.daemon, 'SIGKILL');
  });
  const daemon = `setsid sh -c 'echo $$ >${fifo}; exec sleep 1000'`;
  const command = `${daemon} >/dev/null 2>&1 & exec sleep 1000`;
  await expect(host.start(OWNER, { command })).rejects.toThrow('the start fails here');
  expect(clock.daemon).toBeGreaterThan(0);
  expect(isAlive(readEntry(clock.daemon))).toBe(false);
  expect((await host.list(OWNER, {})).total).toBe(0);
});
