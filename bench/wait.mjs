// Waiting: how soon after a child's write its waiter has the answer, and what five thousand waiters cost.

import { decodeRecords } from '../dist/index.js';
import { OWNER, waitFor } from './support/keeper.mjs';
import { KiB, row } from './support/rows.mjs';
import { median, nowMs, percentile, timed } from './support/statistics.mjs';

const STAMPS_PROGRAM = new URL('./programs/stamps.mjs', import.meta.url).pathname;
const STAMPS = 500;
const PAUSE_MS = 8;
const WAITERS = 5000;

export async function run(context) {
  const keeper = await context.openKeeper();
  try {
    context.progress('growth, by wait');
    const byWait = await awakenings(keeper.link, waitForGrowth);
    context.progress('growth, by read');
    const byRead = await awakenings(keeper.link, (link, at) => readPage(link, at, 60_000));
    const crowd = await parkCrowd(keeper, context);
    const spread = (samples) =>
      `p90 ${percentile(samples, 0.9).toFixed(2)}, p99 ${percentile(samples, 0.99).toFixed(2)} ms`;
    return [
      row({
        what: "child's write to the waiter's answer, p50",
        value: median(byWait),
        unit: 'ms',
        under: 1,
        note: spread(byWait),
      }),
      row({
        what: 'the same by a waiting read, the bytes with it',
        value: median(byRead),
        unit: 'ms',
        note: spread(byRead),
      }),
      row({
        what: `${WAITERS} parked waiters: keeper RSS each`,
        value: crowd.rssEach,
        unit: 'bytes',
        under: 4 * KiB,
        note: crowd.note,
      }),
      row({
        what: `${WAITERS} parked waiters: keeper heap each`,
        value: crowd.heapEach,
        unit: 'bytes',
        under: 4 * KiB,
        note: 'after a forced collection',
      }),
      row({
        what: 'the exit of their process to the last of the answers',
        value: crowd.answeredMs,
        unit: 'ms',
        note: 'sent by the keeper, parsed by the client',
      }),
    ];
  } finally {
    await keeper.stop();
  }
}

/** Milliseconds from each stamp to the moment at which somebody who waited knew that there was something. */
async function awakenings(link, waitForMore) {
  const argv = [process.execPath, STAMPS_PROGRAM, String(STAMPS), String(PAUSE_MS)];
  const { process: started } = await link.start(OWNER, { argv });
  const at = { id: started.id, after: started.seq };
  const samples = [];
  for (let over = false; !over;) {
    const answer = await waitForMore(link, at);
    const answeredMs = nowMs();
    const page = answer.records === undefined ? await readPage(link, at) : answer;
    at.after = page.nextAfter;
    const events = Array.from(decodeRecords(page.records));
    const output = events.filter(({ kind }) => kind === 'output').map(({ data }) => data);
    const [stamp] = Buffer.concat(output).toString().split('\n', 1);
    // Should there be a second line, nobody was waiting for it.
    if (stamp) samples.push(answeredMs - Number(stamp) / 1e6);
    over = events.some(({ kind }) => kind === 'closed');
  }
  if (samples.length < STAMPS / 2)
    throw new Error(`only ${samples.length} of ${STAMPS} lines were waited for`);
  return samples;
}

async function waitForGrowth(link, { id, after }) {
  return link.wait(OWNER, { waits: [{ id, for: [{ kind: 'growth', after }] }] });
}

async function readPage(link, { id, after }, waitMs) {
  return link.read(OWNER, { id, after, ...(waitMs !== undefined && { waitMs }) });
}

async function parkCrowd(keeper, context) {
  const { link } = keeper;
  const { process: sleeper } = await link.start(OWNER, { argv: ['sleep', '600'] });
  // Collects what lies about from the figures above.
  const before = await keeper.memory();
  const rssBefore = await keeper.rssBytes();
  context.progress(`parking ${WAITERS} waiters`);
  const waits = Array.from({ length: WAITERS }, () => waitFor(link, sleeper.id, 'exit'));
  while ((await link.health(OWNER, {})).parkedWaits < WAITERS);
  const rssParked = await keeper.rssBytes();
  const parked = await keeper.memory();
  const answeredMs = await timed(async () => {
    await link.signal(OWNER, { id: sleeper.id, signal: 'KILL' });
    const ended = await Promise.all(waits);
    if (!ended.every(({ outcome }) => outcome.signal === 'SIGKILL'))
      throw new Error('a waiter was told something else');
  });
  const { parkedWaits } = await link.health(OWNER, {});
  if (parkedWaits !== 0) throw new Error(`${parkedWaits} waiters are left`);
  const each = (after, from) => (after - from) / WAITERS;
  return {
    rssEach: each(rssParked, rssBefore),
    heapEach: each(parked.heapUsed + parked.external, before.heapUsed + before.external),
    note: `nothing collected; ${(each(parked.rss, before.rss) / KiB).toFixed(2)} KiB after a forced collection`,
    answeredMs,
  };
}
