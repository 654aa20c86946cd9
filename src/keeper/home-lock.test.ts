import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { program, temporaryFolder } from '../../test/support/hosts.ts';
import { takeLock } from './home-lock.ts';

describe('the lock of a home', () => {
  it('[K71] is taken by a process that asks for it while others only check it', async () => {
    const path = join(temporaryFolder(), 'a.lock');
    takeLock(path)?.release();
    const looker = spawn(process.execPath, [program('look-at-lock.mjs'), path], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const ended = once(looker, 'exit');
    await once(looker.stdout, 'data');
    let taken = 0;
    for (let turn = 0; turn < 5000; turn += 1) {
      const lock = takeLock(path);
      if (lock) taken += 1;
      lock?.release();
    }
    looker.stdin.end();
    expect(taken).toBe(5000);
    await ended;
  });

  it('[K71] is refused while another has it', () => {
    const path = join(temporaryFolder(), 'b.lock');
    const lock = takeLock(path);
    expect(takeLock(path)).toBeUndefined();
    lock?.release();
    takeLock(path)?.release();
  });
});
