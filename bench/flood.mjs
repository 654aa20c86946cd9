// Ten programs that print without end, and somebody who works beside them.

import { Echo } from './support/echo.mjs';
import { OWNER } from './support/keeper.mjs';
import { MiB, row } from './support/rows.mjs';
import { median, nowMs, percentile } from './support/statistics.mjs';
import { setTimeout as sleep } from 'node:timers/promises';

const FLOODS = 10;
const FLOOD_MS = 20_000;
const PAUSE_MS = 15;
const JOURNAL_BYTES = 64 * MiB;

export async function run(context) {
  const keeper = await context.openKeeper();
  const { link } = keeper;
  try {
    const echo = new Echo(link);
    await echo.open();
    for (let turn = 0; turn < 100; turn += 1) await echo.once();
    const calm = [];
    for (let turn = 0; turn < 100; turn += 1) calm.push(await echo.once());
    const before = await keeper.memory();
    const floods = [];
    for (let each = 0; each < FLOODS; each += 1) {
      const { process } = await link.start(OWNER, { argv: ['yes', `flood ${each}`] });
      floods.push(process.id);
    }
    context.progress(`${FLOODS} × yes`);
    const seen = await flooded(keeper, echo);
    const infos = await Promise.all(floods.map((id) => link.get(OWNER, { id })));
    if (!infos.every(({ state }) => state === 'running')) throw new Error('a flood has ended');
    await Promise.all(floods.map((id) => link.signal(OWNER, { id, signal: 'KILL' })));
    return rowsOf({ seen, calm, before, infos });
  } finally {
    await keeper.stop();
  }
}

function rowsOf({ seen, calm, before, infos }) {
  const printed = infos.map(({ bytes }) => bytes.total);
  const rate = printed.reduce((sum, bytes) => sum + bytes, 0) / (FLOOD_MS / 1000);
  const spread = `p50 ${median(seen.echoMs).toFixed(2)}, worst ${Math.max(...seen.echoMs).toFixed(0)} ms, ${seen.echoMs.length} echoes; calm p50 ${median(calm).toFixed(2)} ms`;
  const lost = infos.reduce((sum, { bytes }) => sum + bytes.lost, 0);
  return [
    row({
      what: 'keeper RSS growth, worst of the samples',
      value: Math.max(...seen.rss) - before.rss,
      unit: 'bytes',
      under: 64 * MiB,
      note: `from ${(before.rss / MiB).toFixed(0)} MiB`,
    }),
    row({
      what: "another process's echo, p99",
      value: percentile(seen.echoMs, 0.99),
      unit: 'ms',
      under: 50,
      note: spread,
    }),
    row({
      what: 'journals on disk, worst of the samples',
      value: Math.max(...seen.disk),
      unit: 'bytes',
      atMost: FLOODS * JOURNAL_BYTES + MiB,
      note: `cap ${FLOODS} × 64 MiB, and 1 MiB for the echo`,
    }),
    row({
      what: 'output taken in all',
      value: rate,
      unit: 'rate',
      note: `least ${(Math.min(...printed) / 1e9).toFixed(2)}, most ${(Math.max(...printed) / 1e9).toFixed(2)} GB of one`,
    }),
    row({ what: 'bytes that were not stored', value: lost, unit: 'bytes', atMost: 0 }),
  ];
}

async function flooded(keeper, echo) {
  const seen = { echoMs: [], rss: [], disk: [] };
  const untilMs = nowMs() + FLOOD_MS;
  const watching = (async () => {
    while (nowMs() < untilMs) {
      seen.rss.push(await keeper.rssBytes());
      seen.disk.push(keeper.journals().bytes);
      await sleep(200);
    }
  })();
  while (nowMs() < untilMs) {
    seen.echoMs.push(await echo.once());
    await sleep(PAUSE_MS);
  }
  await watching;
  return seen;
}
