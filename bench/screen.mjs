// Screens: what it costs to take in 50 MB, to look at the end of it, to paint it, and what 26 bombs cost others.

import { builtBombs, tape } from './support/tape.mjs';
import { MemoryCheckpoints } from '../dist/screen/emulator/checkpoints.js';
import { Pictures } from '../dist/screen/picture/pictures.js';
import { Screens } from '../dist/screen/view/screens.js';
import { systemClock } from '../dist/base/clock.js';
import { row } from './support/rows.mjs';
import { median, nowMs, percentile } from './support/statistics.mjs';

const size = { cols: 100, rows: 30 };
const MEGABYTES = 50;

export async function run(context) {
  context.progress('50 MB');
  const flood = await takeFlood();
  context.progress('pictures');
  const picture = await paintPictures();
  context.progress('bombs');
  const bombs = await dropBombs();
  context.progress('a worker that has to be replaced');
  const replaced = await replaceWorker();
  return [
    row({
      what: `${MEGABYTES} MB taken in by a screen, per CPU-second`,
      value: flood.perCpuSecond * 1e6,
      unit: 'rate',
      atLeast: 25e6,
      note: `${flood.tookMs.toFixed(0)} ms, with checkpoints; right at the end: ${flood.right}`,
    }),
    row({
      what: 'snapshot of it afterwards',
      value: flood.snapshotMs,
      unit: 'ms',
      under: 300,
      note: `of a screen that is opened anew, from a checkpoint: ${flood.againMs.toFixed(0)} ms; at an event in the middle: ${flood.middleMs.toFixed(0)} ms`,
    }),
    row({
      what: `screenshot of ${size.cols}x${size.rows}, warm, p50`,
      value: median(picture.warm),
      unit: 'ms',
      under: 150,
      note: `snapshot and PNG; p99 ${percentile(picture.warm, 0.99).toFixed(0)} ms, the very first ${picture.firstMs.toFixed(0)} ms, ${picture.bytes} bytes`,
    }),
    row({
      what: `${bombs.count} bombs: another screen's event to its snapshot, p99`,
      value: percentile(bombs.waits, 0.99),
      unit: 'ms',
      under: 50,
      note: `worst ${Math.max(...bombs.waits).toFixed(0)} ms; main thread held up at most ${bombs.stallMs.toFixed(0)} ms`,
    }),
    row({
      what: 'worker replaced after an event that needs for ever',
      value: replaced.otherMs,
      unit: 'ms',
      under: 1000,
      note: 'until another screen, which was in it, shows itself again; budget 250 ms of it',
    }),
  ];
}

async function takeFlood() {
  const lines = Array.from(
    { length: 800 },
    (_, n) => `\x1b[3${n % 8}mline ${n} ${'x'.repeat(40 + (n % 30))}\x1b[0m\r\n`,
  ).join('');
  const page = Buffer.from(lines).subarray(0, 65_000);
  const source = tape([
    ...Array.from({ length: Math.ceil((MEGABYTES * 1e6) / page.length) }, () => page),
    '\r\nthe end',
  ]);
  const screens = new Screens({ clock: systemClock });
  try {
    const checkpoints = new MemoryCheckpoints();
    const screen = screens.open({ size, source, checkpoints });
    const cpu = process.cpuUsage();
    const begun = nowMs();
    await screen.advance();
    const tookMs = nowMs() - begun;
    const { user, system } = process.cpuUsage(cpu);
    const timed = async (act) => {
      const from = nowMs();
      const answer = await act();
      return [nowMs() - from, answer];
    };
    const [snapshotMs, snapshot] = await timed(() => screen.snapshot());
    const [middleMs] = await timed(() =>
      screen.snapshot({ at: Math.round(source.events.length / 2) }),
    );
    await screen.close();
    const again = screens.open({ size, source, checkpoints });
    const [againMs, seen] = await timed(async () => {
      await again.advance();
      return again.snapshot();
    });
    return {
      tookMs,
      perCpuSecond: MEGABYTES / ((user + system) / 1e6),
      snapshotMs,
      againMs,
      middleMs,
      right:
        seen.hash === snapshot.hash &&
        snapshot.rowsShown.some(({ chars }) => chars.join('').startsWith('the end')),
    };
  } finally {
    await screens.close();
  }
}

async function paintPictures() {
  const screens = new Screens({ clock: systemClock });
  const pictures = new Pictures(systemClock);
  try {
    const text = Array.from(
      { length: 30 },
      (_, n) =>
        `\x1b[${30 + (n % 8)};${n % 2}mThe quick brown fox ${n} jumps over the lazy dog ┌──┐ │ ok │ 漢字 ${'='.repeat(20)}\x1b[0m`,
    ).join('\r\n');
    const source = tape([text]);
    const screen = screens.open({ size, source });
    await screen.advance();
    const shoot = async () => {
      const from = nowMs();
      const { png } = await pictures.png(await screen.view());
      return [nowMs() - from, png.length];
    };
    const [firstMs, bytes] = await shoot();
    const warm = [];
    for (let n = 0; n < 50; n += 1) warm.push((await shoot())[0]);
    return { firstMs, warm, bytes };
  } finally {
    await Promise.all([screens.close(), pictures.close()]);
  }
}

async function dropBombs() {
  const screens = new Screens({ clock: systemClock });
  const waits = [];
  let stallMs = 0;
  let before = nowMs();
  const heart = setInterval(() => {
    stallMs = Math.max(stallMs, nowMs() - before - 5);
    before = nowMs();
  }, 5);
  try {
    const quiet = tape(['ready']);
    const other = screens.open({ size, source: quiet });
    await other.advance();
    const bombs = builtBombs();
    for (const pieces of bombs) {
      const screen = screens.open({ size, source: tape(pieces) });
      before = nowMs();
      const state = { over: false };
      const bombed = screen.advance().finally(() => {
        state.over = true;
      });
      do {
        const from = nowMs();
        await other.feed([quiet.print('.')]);
        await other.snapshot();
        waits.push(nowMs() - from);
      } while (!state.over);
      await bombed;
      await screen.close();
    }
    return { count: bombs.length, waits, stallMs };
  } finally {
    clearInterval(heart);
    await screens.close();
  }
}

/** A job that cannot end within its budget, whatever the guard does: one screen of a thousand by five hundred, reset. */
async function replaceWorker() {
  const screens = new Screens({ clock: systemClock });
  try {
    const other = screens.open({ size, source: tape(['calm']) });
    await other.advance();
    const slow = screens.open({
      size: { cols: 1000, rows: 500 },
      source: tape([Buffer.from('\x1bc\x1b[?1049h\x1b#8'.repeat(6000))]),
    });
    const { generation } = screens;
    const from = nowMs();
    const bombed = slow.advance();
    while (screens.generation === generation) await other.snapshot();
    await other.snapshot();
    const otherMs = nowMs() - from;
    await bombed;
    return { otherMs };
  } finally {
    await screens.close();
  }
}
