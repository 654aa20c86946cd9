// The server as a client of coder's process API meets it: the same work over HTTP and by Node alone, in turns.

import { openServer } from './support/server.mjs';
import { KiB, row } from './support/rows.mjs';
import { nowMs } from './support/statistics.mjs';
import { crowd, EndOnWord, inTurns, ofOther, rawSpawn } from './support/turns.mjs';

const TURNS = 300;
/** A server that has just begun has compiled little of itself: so it is for the first thousand, and never again. */
const WARM_UP = 2000;
const CROWD = 200;
const CROWD_ROUNDS = 7;
const BIG_BYTES = 64_000_000;
const BIG_ROUNDS = 15;
/** Of these, so many while the engine still compiles. */
const BIG_FIRST = 7;
const BIG = `yes 0123456789abcdef0123456789abcde | head -c ${BIG_BYTES}`;
/** Behind the answer 64 MB are brought to the disk: not while the other side is measured. */
const PUT_AWAY_MS = 300;
const WAITERS = 5000;
const EXITS = 200;

export async function run(context) {
  const server = await openServer({ profile: context.profile });
  try {
    context.progress('start and wait, in turns');
    const through = async () =>
      finished(await server.wait((await server.start({ command: 'true' })).id));
    const raw = () => rawSpawn('true');
    const first = await inTurns({ raw, http: through }, { turns: TURNS, warmUp: 10 });
    for (let turn = 0; turn < WARM_UP; turn += 1) await through();
    const one = await inTurns({ raw, http: through }, { turns: TURNS, warmUp: 10 });
    context.progress(`${CROWD} at once`);
    await server.connections(CROWD);
    const many = await inTurns(
      { raw: crowd(CROWD, raw), http: crowd(CROWD, through) },
      { turns: CROWD_ROUNDS, warmUp: 2 },
    );
    // Before the large outputs: the disk is busy with those for a while.
    context.progress('exit to answer');
    const word = new EndOnWord();
    const parkedWaits = async () => (await server.health()).parkedWaits;
    const exits = await inTurns(
      {
        raw: () => word.rawEvent(),
        http: () => word.answer({ start: server.start, wait: server.wait, parked: parkedWaits }),
      },
      { turns: EXITS, warmUp: 20 },
    );
    word.remove();
    context.progress('64 MB');
    // Nobody prints so much a thousand times: that the keeper still compiles in the first of them belongs to the figure.
    const big = await inTurns(
      { raw: () => rawSpawn(BIG), http: () => bigThrough(server) },
      { turns: BIG_ROUNDS, warmUp: 1, restMs: PUT_AWAY_MS },
    );
    const bigFirst = { raw: big.raw.slice(0, BIG_FIRST), http: big.http.slice(0, BIG_FIRST) };
    const parked = await park(server, context);
    return [
      row({
        what: 'start + wait of `true` over HTTP: p50 of raw spawn until close',
        ...ofOther(one, 'http'),
        atMost: 0.9,
      }),
      row({
        what: `the same, of the first ${TURNS} of a new server`,
        ...ofOther(first, 'http'),
      }),
      row({
        what: `${CROWD} of them at once: of ${CROWD} raw spawns at once`,
        ...ofOther(many, 'http'),
        atMost: 0.7,
      }),
      row({
        what: '64 MB of output, start to answer: of reading it raw',
        ...ofOther(big, 'http'),
        atMost: 1,
      }),
      row({
        what: `the same, of the first ${BIG_FIRST} of these ${BIG_ROUNDS}`,
        ...ofOther(bigFirst, 'http'),
      }),
      row({
        what: 'exit to answer over HTTP: p50 of the raw exit event',
        ...ofOther(exits, 'http'),
        atMost: 1.8,
      }),
      row({
        what: `${WAITERS} parked waits: server RSS each`,
        value: parked.rssEach,
        unit: 'bytes',
        under: 16 * KiB,
        note: parked.note,
      }),
      row({
        what: 'the exit of their process to the last of the answers',
        value: parked.answeredMs,
        unit: 'ms',
        under: 500,
        note: 'answers parsed by one client on the same machine',
      }),
    ];
  } finally {
    await server.stop();
  }
}

function finished({ running, exit_code: code }) {
  if (running || code !== 0) throw new Error(`running ${running}, exit code ${code}`);
}

async function bigThrough(server) {
  const { id } = await server.start({ command: BIG });
  const { truncated } = await server.wait(id);
  if (truncated.original_bytes !== BIG_BYTES)
    throw new Error(`${truncated.original_bytes} bytes came`);
}

async function park(server, context) {
  const { id, pid } = await server.start({ command: 'exec sleep 600' });
  await server.memory();
  const rssBefore = server.rssBytes();
  context.progress(`parking ${WAITERS} waits`);
  const waits = Array.from({ length: WAITERS }, () => server.wait(id));
  while ((await server.underWay()) <= WAITERS);
  const rssParked = server.rssBytes();
  const collected = await server.memory();
  const began = nowMs();
  process.kill(pid, 'SIGKILL');
  const answers = await Promise.all(waits);
  const answeredMs = nowMs() - began;
  if (!answers.every(({ running }) => running === false))
    throw new Error('a waiter was told something else');
  const each = (bytes) => (bytes - rssBefore) / WAITERS;
  return {
    rssEach: each(rssParked),
    answeredMs,
    note: `nothing collected; ${(each(collected.rss) / KiB).toFixed(2)} KiB after a forced collection, connections included`,
  };
}
