// A thousand sleeping processes: what they cost the keeper, and whether the next start is still as quick.

import { OWNER, runThrough } from './support/keeper.mjs';
import { row } from './support/rows.mjs';
import { inFlight, median, timed } from './support/statistics.mjs';

const LIVE = 1000;
const STARTS = 60;
const WARM_UP = 200;

export async function run(context) {
  const keeper = await context.openKeeper();
  const { link } = keeper;
  let stopMs = 0;
  let figures;
  try {
    for (let start = 0; start < WARM_UP; start += 1)
      await runThrough(link, { command: 'true' }, 'closed');
    const before = await keeper.memory();
    context.progress('starts with 0 live');
    const first = await startTimes(link);
    context.progress(`starting ${LIVE}`);
    const fillMs = await timed(() =>
      inFlight(LIVE, 16, () => link.start(OWNER, { argv: ['sleep', '600'] })),
    );
    const { live, rssBytes } = await link.health(OWNER, {});
    if (live !== LIVE) throw new Error(`${live} processes are live instead of ${LIVE}`);
    context.progress(`starts with ${LIVE} live`);
    const next = await startTimes(link);
    const { rss } = await keeper.memory();
    figures = { before, first, next, rss, rssBytes, fillMs };
  } finally {
    context.progress(`ending ${LIVE}`);
    stopMs = await timed(() => keeper.stop());
  }
  return rowsOf(figures, stopMs);
}

function rowsOf({ before, first, next, rss, rssBytes, fillMs }, stopMs) {
  const ratio = (name) => median(next[name]) / median(first[name]);
  const note = (name) =>
    `p50 ${median(next[name]).toFixed(2)} ms against ${median(first[name]).toFixed(2)} ms with 0 live`;
  const each = ((rss - before.rss) / LIVE / 1024).toFixed(1);
  const MB = 1e6;
  return [
    row({
      what: `keeper RSS with ${LIVE} live`,
      value: rssBytes,
      unit: 'bytes',
      under: 150 * MB,
      note: `${(rss / MB).toFixed(0)} MB after a collection, ${each} KiB each`,
    }),
    row({
      what: 'start of the next one, of the first',
      value: ratio('start'),
      unit: 'times',
      atMost: 1.5,
      note: note('start'),
    }),
    row({
      what: 'start to exit of the next one, of the first',
      value: ratio('exit'),
      unit: 'times',
      atMost: 1.5,
      note: note('exit'),
    }),
    row({
      what: 'starts per second on the way there',
      value: LIVE / (fillMs / 1000),
      unit: 'perSecond',
    }),
    row({ what: 'keeper.stop: all ended, keeper gone', value: stopMs, unit: 'ms' }),
  ];
}

/** Until the start is answered, and until its exit is. */
async function startTimes(link) {
  const times = { start: [], exit: [] };
  for (let turn = 0; turn < STARTS; turn += 1) {
    let startMs = 0;
    const exitMs = await timed(async () => {
      let id = '';
      startMs = await timed(async () => {
        ({
          process: { id },
        } = await link.start(OWNER, { command: 'true' }));
      });
      await link.wait(OWNER, { waits: [{ id, for: [{ kind: 'exit' }] }] });
    });
    times.start.push(startMs);
    times.exit.push(exitMs);
  }
  return times;
}
