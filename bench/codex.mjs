// Our exec-server beside codex's own, in one run, on one machine, with one client: `npm run bench:codex`. Each figure is
// taken of the one and then of the other; --json prints them for programs.

import { parseArgs } from 'node:util';
import { codexCli, CODEX_VERSION } from '../scripts/codex-cli.mjs';
import { openOurs, openPeer, Session } from './support/codex-session.mjs';
import { machineLine, watchMachine } from './support/machine.mjs';
import { missed, row, table } from './support/rows.mjs';
import { median, nowMs, percentile } from './support/statistics.mjs';

const STARTS = 300;
const AT_ONCE = 200;
const ROUNDS = 3;
const EXITS = 60;
const KEYS = 200;
const FLOOD_BYTES = 200_000_000;
const FLOOD_ROUNDS = 7;
/** An engine that compiles while it runs has compiled little of this at first. */
const FLOOD_WARM_UP = 6;
/** Prints the time on the clock that this program reads too, and ends. */
const STAMP =
  'use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC usleep); $|=1; usleep(30000); printf "%.6f\\n", clock_gettime(CLOCK_MONOTONIC)*1000;';

const { values } = parseArgs({ options: { json: { type: 'boolean' } } });
const say = (text) => process.stderr.write(`${text}\n`);

const codex = codexCli();
say(machineLine());
const watched = watchMachine();
const servers = { ours: await openOurs(), peer: await openPeer(codex) };
const rows = [];
try {
  rows.push(...(await sequential()), ...(await together()), ...(await exits()));
  rows.push(...(await echoes(false)), ...(await echoes(true)), ...(await floods()));
  rows.push(...(await lateReaders()));
} finally {
  await servers.ours.close();
  await servers.peer.close();
}
const { othersCores, load } = watched();
say(`others kept ${othersCores.toFixed(2)} cores busy, load ${load.toFixed(2)}`);
const figured = rows.map((each) => ({ figure: 'codex', ...each }));
process.stdout.write(
  values.json
    ? `${JSON.stringify({ machine: machineLine(), peer: CODEX_VERSION, rows: figured }, undefined, 2)}\n`
    : `\n${table(figured)}\n`,
);
process.exitCode = missed(figured) === 0 ? 0 : 1;

/** Of the peer first, then of ours, each in a session of its own. */
async function both(what, measure) {
  const found = {};
  for (const name of ['peer', 'ours']) {
    say(`${what}: ${name}`);
    const session = await Session.open(servers[name]);
    found[name] = await measure(session, name);
    await session.end();
  }
  return found;
}

function latencies(what, { ours, peer }, bar) {
  const spread = (samples) =>
    `p95 ${percentile(samples, 0.95).toFixed(2)}, p99 ${percentile(samples, 0.99).toFixed(2)} ms`;
  return [
    row({
      what: `${what}, p50: codex ${CODEX_VERSION}`,
      value: median(peer),
      unit: 'ms',
      note: spread(peer),
    }),
    row({ what: `${what}, p50: ours`, value: median(ours), unit: 'ms', note: spread(ours) }),
    row({
      what: `${what}: times lower`,
      value: median(peer) / median(ours),
      unit: 'times',
      ...(bar && { atLeast: bar }),
    }),
  ];
}

async function sequential() {
  const found = await both('start to closed of true', async (session) => {
    const samples = [];
    for (let index = 0; index < STARTS; index += 1) {
      const id = `s${index}`;
      const closed = session.closed(id);
      const beganMs = nowMs();
      session.start(id, ['true']);
      samples.push((await closed).atMs - beganMs);
    }
    return samples;
  });
  return latencies('start to closed of true', found, 12);
}

async function together() {
  const found = await both(`${AT_ONCE} at once`, async (session) => {
    const rounds = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const beganMs = nowMs();
      const ids = Array.from({ length: AT_ONCE }, (_, index) => `r${round}-${index}`);
      const closed = ids.map((id) => session.closed(id));
      for (const id of ids) session.start(id, ['true']);
      const ends = await Promise.all(closed);
      rounds.push(Math.max(...ends.map(({ atMs }) => atMs)) - beganMs);
    }
    return rounds;
  });
  return latencies(`${AT_ONCE} at once`, found, 3);
}

async function exits() {
  const found = await both('exit to long-poll answer', async (session) => {
    const samples = [];
    for (let index = 0; index < EXITS; index += 1) {
      const processId = `e${index}`;
      await session.start(processId, ['perl', '-e', STAMP]);
      // Behind the stamp's own number: answered by the exit.
      await session.call('process/read', { processId, afterSeq: 1, waitMs: 10_000 });
      const answeredMs = nowMs();
      const { chunks } = await session.call('process/read', { processId, afterSeq: 0, waitMs: 0 });
      samples.push(answeredMs - Number(Buffer.from(chunks[0].chunk, 'base64').toString()));
    }
    return samples;
  });
  return latencies('exit to long-poll answer', found, 12);
}

async function echoes(tty) {
  const what = `keystroke echo, ${tty ? 'terminal' : 'pipe'}`;
  const found = await both(what, async (session) => {
    const processId = `k${tty}`;
    await session.start(processId, ['cat'], { tty, pipeStdin: !tty });
    const samples = [];
    for (let index = 0; index < KEYS; index += 1) {
      const echoed = session.output(processId);
      const beganMs = nowMs();
      const written = session.call('process/write', {
        processId,
        chunk: 'eA==',
        writeId: `w${index}`,
      });
      samples.push((await echoed) - beganMs);
      await written;
    }
    await session.call('process/terminate', { processId });
    return samples;
  });
  return latencies(what, found, 12);
}

/**
 * In turns: how fast the machine is changes within seconds. A client that parses every message whole is busier than the
 * server that it measures, so what the lightest one sees is told beside.
 */
async function floods() {
  const what = '200 MB by notifications';
  say(`${what}, in turns`);
  const first = await floodRates({ whole: true }, FLOOD_WARM_UP);
  const whole = await floodRates({ whole: true }, FLOOD_ROUNDS);
  const light = await floodRates({ whole: false }, FLOOD_ROUNDS);
  const rate = ({ rates, chunks }) => ({
    value: median(rates),
    unit: 'rate',
    note: `${chunks} chunks`,
  });
  const times = ({ ours, peer }) => ({
    value: median(ours.rates) / median(peer.rates),
    unit: 'times',
  });
  return [
    row({ what: `${what}: codex ${CODEX_VERSION}`, ...rate(whole.peer) }),
    row({ what: `${what}: ours`, ...rate(whole.ours) }),
    row({ what: `${what}: times faster`, ...times(whole), atLeast: 1.5 }),
    row({ what: `the same, of the first ${FLOOD_WARM_UP}`, ...times(first) }),
    row({ what: 'the same, to the lightest client', ...times(light) }),
  ];
}

async function floodRates(options, rounds) {
  const found = {};
  for (const name of ['peer', 'ours'])
    found[name] = { session: await Session.open(servers[name], options), rates: [], chunks: 0 };
  for (let round = 0; round < rounds; round += 1)
    for (const side of Object.values(found)) {
      const { rate, chunks } = await flooded(side.session, `f${round}`);
      side.rates.push(rate);
      side.chunks = chunks;
    }
  for (const { session } of Object.values(found)) await session.end();
  return found;
}

async function flooded(session, processId) {
  const closed = session.closed(processId);
  const beganMs = nowMs();
  session.start(processId, ['head', '-c', String(FLOOD_BYTES), '/dev/zero']);
  const { atMs, bytes, chunks } = await closed;
  if (bytes !== FLOOD_BYTES) throw new Error(`${bytes} of ${FLOOD_BYTES} bytes came`);
  return { rate: (FLOOD_BYTES / (atMs - beganMs)) * 1000, chunks };
}

/** The client is away while 200 MB are printed; then it reads once. */
async function lateReaders() {
  const rows = [];
  for (const name of ['peer', 'ours']) {
    say(`late reader: ${name}`);
    const session = await Session.open(servers[name]);
    const processId = 'late';
    await session.start(processId, ['sh', '-c', `sleep 0.3; head -c ${FLOOD_BYTES} /dev/zero`]);
    await session.end();
    const again = await resumed(servers[name], session.id);
    while (
      !(await again.call('process/read', { processId, afterSeq: 2 ** 40, waitMs: 2000 })).closed
    );
    const beganMs = nowMs();
    const { chunks, omitted = [] } = await again.call('process/read', {
      processId,
      afterSeq: 0,
      waitMs: 0,
    });
    const tookMs = nowMs() - beganMs;
    const there = chunks.reduce((sum, { chunk }) => sum + Buffer.byteLength(chunk, 'base64'), 0);
    const markers = omitted.reduce(
      (sum, { bytes }) => sum + `\n[holdfast: ${bytes} bytes of output are not here]\n`.length,
      0,
    );
    const told = omitted.reduce((sum, { bytes }) => sum + bytes, 0);
    const who = name === 'ours' ? 'ours' : `codex ${CODEX_VERSION}`;
    rows.push(
      row({
        what: `late reader of 200 MB: ${who}, can be read`,
        value: there - markers,
        unit: 'bytes',
        note: `first number ${chunks[0].seq}, ${tookMs.toFixed(0)} ms`,
      }),
      row({
        what: `late reader of 200 MB: ${who}, missing and not told`,
        value: FLOOD_BYTES - (there - markers) - told,
        unit: 'bytes',
        ...(name === 'ours' && { atMost: 0 }),
      }),
    );
    await again.end();
  }
  return rows;
}

/** The server may need a moment to see that the old connection is gone. */
async function resumed(server, id) {
  for (;;) {
    try {
      return await Session.open(server, { resume: id });
    } catch (error) {
      if (!/already attached/.test(error.message)) throw error;
    }
  }
}
