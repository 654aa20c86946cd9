// Recorded output of real programs, with the screens on which tmux and libvterm agreed when it was recorded.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Emulator } from '../../src/screen/emulator/emulator.ts';
import { toSnapshot } from '../../src/screen/view/view.ts';
import { visibleLines } from '../../src/screen/view/snapshot.ts';

const folder = new URL('../recordings', import.meta.url).pathname;
const names = readdirSync(folder)
  .filter((name) => name.endsWith('.tty'))
  .map((name) => name.slice(0, -'.tty'.length));

describe('a recording', () => {
  test.each(names)('[SC24] %s: shows what tmux and libvterm showed, however it is cut', (name) => {
    const bytes = readFileSync(join(folder, `${name}.tty`));
    const shown = readFileSync(join(folder, `${name}.txt`), 'utf8')
      .split('\n')
      .slice(0, -1);
    for (const cut of [1, 100, bytes.length]) {
      const emulator = new Emulator(80, 24, 1000);
      for (let at = 0; at < bytes.length; at += cut) emulator.feed(bytes.subarray(at, at + cut));
      expect(visibleLines(toSnapshot(emulator.look(0), 1, []))).toEqual(shown);
    }
  });

  test('[SC24] there are those of a progress bar, less, vim and htop', () => {
    const all = names.join(' ');
    for (const program of ['progress', 'less', 'vim', 'htop']) expect(all).toContain(program);
  });
});
