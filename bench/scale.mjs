// Four thousand live processes and five hundred daemons: whether starts, stops, settling and status are as quick as with few.

import { OWNER, startDaemon, waitFor } from './support/keeper.mjs';
import { row } from './support/rows.mjs';
import { inFlight, median, percentile, timed } from './support/statistics.mjs';

const LIVE = 4000;
const DAEMONS = 500;
const SAMPLES = 40;

export async function run(context) {
  const keeper = await context.openKeeper({ limits: { liveCount: LIVE + 100 } });
  const { link } = keeper;
  try {
    context.progress(`starting ${LIVE}, and ${DAEMONS} daemons`);
    await inFlight(LIVE, 16, () => link.start(OWNER, { argv: ['sleep', '3600'] }));
    await inFlight(DAEMONS, 8, () => startDaemon(link));
    const { live } = await link.health(OWNER, {});
    if (live !== LIVE) throw new Error(`${live} processes are live instead of ${LIVE}`);
    const samples = { start: [], status: [], stop: [], settle: [] };
    context.progress('measuring');
    for (let turn = 0; turn < SAMPLES; turn += 1) {
      let id;
      const start = async () => {
        ({
          process: { id },
        } = await link.start(OWNER, { argv: ['sleep', '3600'] }));
      };
      samples.start.push(await timed(start));
      samples.status.push(await timed(() => link.health(OWNER, {})));
      samples.stop.push(await timed(() => end(link, id)));
      const daemon = await startDaemon(link);
      const settle = async () => {
        const settled = waitFor(link, daemon.id, 'settled');
        process.kill(daemon.pid, 'SIGKILL');
        await settled;
      };
      samples.settle.push(await timed(settle));
    }
    return rowsOf(samples);
  } finally {
    context.progress('ending all');
    await keeper.stop();
  }
}

async function end(link, id) {
  const { survivors } = await link.signal(OWNER, { id, signal: 'terminate' });
  if (survivors.length > 0) throw new Error(`${survivors.length} processes survived`);
}

function rowsOf(samples) {
  const one = (name, what, atMost) =>
    row({
      what: `${LIVE} live and ${DAEMONS} daemons: ${what}, p95`,
      value: percentile(samples[name], 0.95),
      unit: 'ms',
      atMost,
      note: `p50 ${median(samples[name]).toFixed(1)} ms`,
    });
  return [
    one('start', 'start answered', 30),
    one('status', 'status', 50),
    one('stop', 'stop, nothing left', 1000),
    one('settle', "end of a daemon to its process's settling", 1000),
  ];
}
