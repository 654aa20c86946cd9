// Descendants: what the end of a daemon costs the keeper while others live, whether one is seen that comes after many, and
// how soon the next keeper is ready when a killed one left a thousand processes alive.

import { existsSync } from 'node:fs';
import { cpuMs, OWNER, startDaemon, waitFor } from './support/keeper.mjs';
import { row } from './support/rows.mjs';
import { inFlight, median, timed } from './support/statistics.mjs';

const DAEMONS = [0, 100, 500];
/** Few at a time: those whose end is measured live beside the others. */
const ENDS = 10;
const ROUNDS = 12;
const LOST = 1000;
const LIVE = 800;

export async function run(context) {
  const ends = await costOfEnds(context);
  const [least, most] = [Math.min(...ends), Math.max(...ends)];
  const wrong = await daemonsBehindMany(context);
  const { readyMs, workMs } = await nextKeeper(context);
  return [
    row({
      what: `processor time per daemon's end with ${DAEMONS.join(', ')} others: most of least`,
      value: most / least,
      unit: 'times',
      atMost: 2,
      note: ends.map((ms) => `${ms.toFixed(2)} ms`).join(', '),
    }),
    row({
      what: `${ENDS} daemons behind ${LIVE} processes: called settled while alive, or alive after stop`,
      value: wrong.length,
      unit: 'count',
      atMost: 0,
      note: wrong.join('; '),
    }),
    row({
      what: `next keeper ready with ${LOST} lost processes alive`,
      value: readyMs,
      unit: 'ms',
      atMost: 3000,
      note: `${workMs.toFixed(0)} ms of processor time`,
    }),
  ];
}

async function costOfEnds(context) {
  const keeper = await context.openKeeper();
  try {
    const costs = [];
    // Until the code is compiled.
    for (let round = 0; round < ROUNDS; round += 1) await endSome(keeper);
    let alive = 0;
    for (const daemons of DAEMONS) {
      context.progress(`ends beside ${daemons} daemons`);
      await inFlight(daemons - alive, 8, () => startDaemon(keeper.link));
      alive = daemons;
      const samples = [];
      for (let round = 0; round < ROUNDS; round += 1) samples.push(await endSome(keeper));
      costs.push(median(samples));
    }
    return costs;
  } finally {
    await keeper.stop();
  }
}

/** The keeper's milliseconds of processor time per end: from the end until a waiter knows that the process settled. */
async function endSome({ link, pid }) {
  const daemons = [];
  for (let end = 0; end < ENDS; end += 1) daemons.push(await startDaemon(link));
  const before = cpuMs(pid);
  for (const daemon of daemons) {
    const settled = waitFor(link, daemon.id, 'settled');
    process.kill(daemon.pid, 'SIGKILL');
    await settled;
  }
  return (cpuMs(pid) - before) / ENDS;
}

/** What was told wrongly of daemons whose keeper has many other children, started one by one. */
async function daemonsBehindMany(context) {
  const { link, stop } = await context.openKeeper();
  const wrong = [];
  try {
    context.progress(`starting ${LIVE} one by one`);
    for (let started = 0; started < LIVE; started += 1)
      await link.start(OWNER, { argv: ['sleep', '600'] });
    context.progress('daemons behind them');
    for (let daemon = 0; daemon < ENDS; daemon += 1) {
      const { id, pid } = await startDaemon(link);
      // Whoever is to be called settled is called so soon after its root has ended.
      const waits = [{ id, for: [{ kind: 'settled' }] }];
      const { timedOut } = await link.wait(OWNER, { waits, timeoutMs: 500 });
      if (!timedOut) wrong.push(`${id}: settled, and ${pid} lives`);
      const { survivors } = await link.signal(OWNER, { id, signal: 'terminate' });
      if (survivors.length > 0 || existsSync(`/proc/${pid}`)) wrong.push(`${id}: ${pid} survived`);
      else if (!(await link.get(OWNER, { id })).settled) wrong.push(`${id}: ended, not settled`);
    }
    return wrong;
  } finally {
    await stop();
  }
}

async function nextKeeper(context) {
  const first = await context.openKeeper();
  context.progress(`starting ${LOST}`);
  await inFlight(LOST, 16, () => first.link.start(OWNER, { argv: ['sleep', '600'] }));
  process.kill(first.pid, 'SIGKILL');
  await first.link.ended;
  context.progress('the next keeper');
  let next;
  const readyMs = await timed(async () => {
    next = await context.openKeeper({ home: first.home });
  });
  const workMs = cpuMs(next.pid);
  try {
    const { processes } = await next.link.list(OWNER, { limit: LOST });
    const alive = processes.filter(({ settled, state }) => !settled && state === 'lost');
    if (alive.length !== LOST)
      throw new Error(`${alive.length} processes are known to live instead of ${LOST}`);
    return { readyMs, workMs };
  } finally {
    // Its children are init's: their end is waited for by the keeper.
    await next.stop();
  }
}
