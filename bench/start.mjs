// Starting `sh -c true` and knowing how it ended: through the keeper's socket, and by Node alone, in turns.

import { spawn } from 'node:child_process';
import { OWNER, finished, runThrough, waitFor } from './support/keeper.mjs';
import { row } from './support/rows.mjs';
import { inFlight, median, timed } from './support/statistics.mjs';

const TURNS = 400;
/** Until the keeper's code is compiled; it is then what a keeper of some minutes' age is. */
const WARM_UP = 500;
const CROWD = 1000;
const CROWD_ROUNDS = 5;
/** Until the compilers of both have done their work. */
const CROWD_WARM_UP = 2000;
const AT_ONCE = 8;

export async function run(context) {
  const keeper = await context.openKeeper();
  const { link } = keeper;
  let lastId = 0;
  const ways = {
    raw: rawTrue,
    one: () => oneRequest(link),
    keeper: () => runThrough(link, { command: 'true' }),
    closed: () => runThrough(link, { command: 'true' }, 'closed'),
    pipelined: () => pipelinedTrue(link, `true-${++lastId}`),
  };
  try {
    const samples = await takeTurns(ways, context);
    samples.again = await backToBack(ways.one);
    const p50 = Object.fromEntries(
      Object.entries(samples).map(([way, each]) => [way, median(each)]),
    );
    const rates = await crowds(ways, context);
    const together = (way, bar) =>
      row({
        what: `${CROWD} with ${AT_ONCE} in flight, ${way === 'one' ? 'one request' : 'two requests'} each: starts per second of raw`,
        value: median(rates[way].map((rate, round) => rate / rates.raw[round])),
        unit: 'times',
        ...(bar && { atLeast: bar }),
        note: `${median(rates[way]).toFixed(0)} /s against ${median(rates.raw).toFixed(0)} /s raw`,
      });
    const ofRaw = (way) => (samples[way].length > 0 ? p50[way] / p50.raw : Number.NaN);
    const times = (way) => `${p50[way].toFixed(2)} ms against ${p50.raw.toFixed(2)} ms raw`;
    return [
      row({
        what: 'start, exited, answer in one request: p50 of raw spawn until close',
        value: ofRaw('one'),
        unit: 'times',
        atMost: 0.8,
        note: times('one'),
      }),
      row({
        what: 'start answered, then wait for exit: two requests',
        value: ofRaw('keeper'),
        unit: 'times',
        note: times('keeper'),
      }),
      row({
        what: 'the same, waiting for closed',
        value: ofRaw('closed'),
        unit: 'times',
        note: times('closed'),
      }),
      row({
        what: 'the same, both calls sent at once (own id)',
        value: ofRaw('pipelined'),
        unit: 'times',
        note: pipelinedNote(samples, times),
      }),
      row({
        what: 'the first one again, one directly after the other',
        value: ofRaw('again'),
        unit: 'times',
        note: `${times('again')} in turns`,
      }),
      together('one', 1.8),
      together('keeper'),
    ];
  } finally {
    await keeper.stop();
  }
}

/** Raw before every other one: what a keeper still does after its answer must not fall upon another way's turn. */
async function takeTurns({ raw, ...others }, context) {
  const samples = { raw: [], ...Object.fromEntries(Object.keys(others).map((way) => [way, []])) };
  const refused = new Set();
  for (let turn = -WARM_UP; turn < TURNS; turn += 1) {
    if (turn === 0) context.progress('in turns');
    for (const [way, work] of Object.entries(others)) {
      if (refused.has(way)) continue;
      const rawMs = await timed(raw);
      try {
        const ms = await timed(work);
        if (turn < 0) continue;
        samples.raw.push(rawMs);
        samples[way].push(ms);
      } catch (error) {
        // Only this way may be impossible: whoever answers the wait must know a start that is under way.
        if (way !== 'pipelined' || error.code !== 'not_found') throw error;
        refused.add(way);
        samples[way].length = 0;
      }
    }
  }
  return samples;
}

/** One directly after the other. */
async function backToBack(work) {
  const samples = [];
  for (let turn = 0; turn < TURNS; turn += 1) samples.push(await timed(work));
  return samples;
}

async function crowds(ways, context) {
  const rates = { raw: [], one: [], keeper: [] };
  for (const way of ['raw', 'one', 'keeper']) await inFlight(CROWD_WARM_UP, AT_ONCE, ways[way]);
  for (let round = 0; round < CROWD_ROUNDS; round += 1) {
    context.progress(`${CROWD} starts, round ${round + 1}`);
    for (const way of ['raw', 'one', 'keeper']) {
      rates[way].push((CROWD * 1000) / (await timed(() => inFlight(CROWD, AT_ONCE, ways[way]))));
    }
  }
  return rates;
}

function rawTrue() {
  return new Promise((resolve, reject) => {
    const child = spawn('sh', ['-c', 'true'], { stdio: ['ignore', 'pipe', 'pipe'] });
    child.stdout.on('data', () => undefined);
    child.stderr.on('data', () => undefined);
    child
      .once('error', reject)
      .once('close', (code) => (code === 0 ? resolve() : reject(new Error(`exit ${code}`))));
  });
}

async function oneRequest(link) {
  const { process } = await link.start(OWNER, { command: 'true', waitMs: 60_000 });
  finished(process);
}

async function pipelinedTrue(link, id) {
  const started = link.start(OWNER, { command: 'true', id });
  const [ended] = await Promise.all([waitFor(link, id, 'exit'), started]);
  finished(ended);
}

function pipelinedNote(samples, times) {
  return samples.pipelined.length > 0
    ? times('pipelined')
    : 'refused: not_found, the start is still under way';
}
