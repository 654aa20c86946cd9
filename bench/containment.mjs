// What containment costs per start: the same `true` through keepers without and with cgroups, with limits and in bubblewrap, in turns.
// BEFORE=FOLDER, a built checkout of an earlier commit: also beside a start there.

import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { setPriority, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { runThrough } from './support/keeper.mjs';
import { row } from './support/rows.mjs';
import { median, timed } from './support/statistics.mjs';

const TURNS = 200;
const WARM_UP = 150;
const BUBBLEWRAP =
  '--die-with-parent --unshare-user --unshare-pid --unshare-ipc --cap-drop ALL --ro-bind / / --dev /dev --proc /proc -- sh -c true';

export async function run(context) {
  const plain = await context.openKeeper({ groups: false, probe: false });
  const grouped = await context.openKeeper();
  const before = await openBefore();
  const command = 'true';
  const limits = { openFiles: 256, cpuSeconds: 60 };
  const asPlain = () => runThrough(plain.link, { command });
  const starts = {
    plain: asPlain,
    ...(before && { before: () => runThrough(before.link, { command }) }),
    grouped: () => runThrough(grouped.link, { command }),
    limited: () => runThrough(grouped.link, { command, limits }),
  };
  const sandboxes = {
    raw: () => spawned('sh', ['-c', command]),
    wrapped: () => spawned('bwrap', BUBBLEWRAP.split(' ')),
    plain: asPlain,
    sandboxed: () => runThrough(plain.link, { command, sandbox: { fs: 'read-only' } }),
  };
  try {
    const p50 = await inTurns(starts);
    const beside = await inTurns(sandboxes);
    const [added, whole] = [beside.wrapped - beside.raw, beside.sandboxed - beside.plain];
    const times = (way) => `${p50[way].toFixed(2)} ms against ${p50.plain.toFixed(2)} ms plain`;
    return [
      ...(before
        ? [
            row({
              what: 'a start with nothing asked, of one before there was any of this',
              value: p50.plain / p50.before,
              unit: 'times',
              atMost: 1.03,
              note: `${p50.plain.toFixed(2)} ms against ${p50.before.toFixed(2)} ms; with cgroups ${(p50.grouped / p50.before).toFixed(2)}`,
            }),
          ]
        : []),
      row({
        what: 'a start in a cgroup of its own, of a plain one',
        value: p50.grouped / p50.plain,
        unit: 'times',
        atMost: 1.1,
        note: times('grouped'),
      }),
      row({
        what: 'a start with limits, of a plain one',
        value: p50.limited / p50.plain,
        unit: 'times',
        atMost: 1.15,
        note: times('limited'),
      }),
      row({
        what: 'what a sandbox adds, of what bubblewrap alone adds',
        value: whole / added,
        unit: 'times',
        atMost: 1.1,
        note: `${whole.toFixed(2)} ms against ${added.toFixed(2)} ms`,
      }),
    ];
  } finally {
    await plain.stop();
    await grouped.stop();
    await before?.stop();
  }
}

/** The medians. What follows a start waits for the kernel to remove that, so each follows each other one equally often. */
async function inTurns(ways) {
  const samples = Object.fromEntries(Object.keys(ways).map((way) => [way, []]));
  const list = Object.entries(ways);
  for (let turn = -WARM_UP; turn < TURNS; turn += 1) {
    for (const [way, start] of shuffled(list)) {
      const ms = await timed(start);
      if (turn >= 0) samples[way].push(ms);
    }
  }
  return Object.fromEntries(Object.entries(samples).map(([way, each]) => [way, median(each)]));
}

function shuffled(list) {
  const order = list.map((each) => ({ each, at: Math.random() }));
  return order.sort((a, b) => a.at - b.at).map(({ each }) => each);
}

/** The keeper of an earlier version. */
async function openBefore() {
  if (process.env.BEFORE === undefined) return undefined;
  const file = join(resolve(process.env.BEFORE), 'dist/index.js');
  const { connectKeeper } = await import(pathToFileURL(file).href);
  const home = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
  const keeperArgs = ['--idle-ms', '60000'];
  const link = await connectKeeper({ home, env: process.env, keeperArgs });
  // It may have put itself ahead of others, which counts on a busy machine.
  const { pid } = link.keeper;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    setPriority(Number(thread), 0);
    spawnSync('chrt', ['--other', '--pid', '0', thread]);
  }
  if (existsSync(`/proc/${pid}/autogroup`)) writeFileSync(`/proc/${pid}/autogroup`, '0');
  return {
    link,
    async stop() {
      await link.stop();
      rmSync(home, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

function spawned(file, args) {
  return new Promise((resolve, reject) => {
    spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'] })
      .once('error', reject)
      .once('close', resolve);
  });
}
