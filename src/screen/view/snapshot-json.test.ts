import { describe, expect, test } from 'vitest';
import { Emulator } from '../emulator/emulator.ts';
import { structuredJson } from './snapshot-json.ts';
import { structuredSnapshot } from './snapshot-shape.ts';
import type { Snapshot } from './snapshot.ts';
import { toSnapshot } from './view.ts';

function shown(text: string, cols: number, rows: number): Snapshot {
  const emulator = new Emulator(cols, rows, 10);
  emulator.feed(Buffer.from(text));
  return toSnapshot(emulator.look(10), 7, []);
}

const screens: Record<string, Snapshot> = {
  'an empty one': shown('', 4, 2),
  'wide, combined and foreign characters': shown('e\u0301 漢字 \u{1f600} \u2028 ä "\\', 30, 3),
  'every attribute': shown(
    `${[1, 2, 3, 4, '4:3', 5, 7, 8, 9, 53, '38;5;200', '48;2;1;2;3', '58:2::9:8:7;4'].map((code) => `\x1b[0;${code}mx"`).join('')}\x1b[0m`,
    40,
    2,
  ),
  'links and titles': shown(
    '\x1b]2;a "title"\x07\x1b]8;;https://x.example/"\x07here\x1b]8;;\x07',
    20,
    2,
  ),
  'more styles than are kept': shown(
    Array.from({ length: 600 }, (_, n) => `\x1b[38;2;${n >> 8};${n & 255};7m${n % 10}`).join(''),
    40,
    15,
  ),
  'lines above the screen': shown(
    Array.from({ length: 9 }, (_, n) => `line ${n}`).join('\r\n'),
    10,
    3,
  ),
};

describe('the JSON of a structured snapshot', () => {
  for (const [what, snapshot] of Object.entries(screens))
    for (const cells of [true, false])
      test(`[SC3] is that of its shape: ${what}, ${cells ? 'with' : 'without'} cells`, () => {
        const include = { scrollback: true, cells };
        const json = structuredJson('id', snapshot, include);
        expect(JSON.parse(json)).toEqual(structuredSnapshot('id', snapshot, include));
      });
});
