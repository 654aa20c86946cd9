// The server as a client of coder's process API meets it: the same work over HTTP and by Node alone, in turns.

import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as rest } from 'node:timers/promises';
import { openServer } from './support/server.mjs';
import { KiB, row } from './support/rows.mjs';
import { median, nowMs, timed } from './support/statistics.mjs';

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
    const first = await inTurns(() => raw('true'), through, { turns: TURNS, warmUp: 10 });
    for (let turn = 0; turn < WARM_UP; turn += 1) await through();
    const one = await inTurns(() => raw('true'), through, { turns: TURNS, warmUp: 10 });
    context.progress(`${CROWD} at once`);
    await server.connections(CROWD);
    const crowd = (work) => () => Promise.all(Array.from({ length: CROWD }, work));
    const many = await inTurns(
      crowd(() => raw('true')),
      crowd(through),
      { turns: CROWD_ROUNDS, warmUp: 2 },
    );
    // Before the large outputs: the disk is busy with those for a while.
    context.progress('exit to answer');
    const fifo = new Fifo();
    const exits = await bySelf(
      () => rawExit(fifo),
      () => exitThrough(server, fifo),
    );
    fifo.remove();
    context.progress('64 MB');
    // Nobody prints so much a thousand times: that the keeper still compiles in the first of them belongs to the figure.
    const big = await inTurns(
      () => raw(BIG),
      () => bigThrough(server),
      { turns: BIG_ROUNDS, warmUp: 1, restMs: PUT_AWAY_MS },
    );
    const bigFirst = { raw: big.raw.slice(0, BIG_FIRST), http: big.http.slice(0, BIG_FIRST) };
    const parked = await park(server, context);
    const against = (pair) =>
      `${median(pair.http).toFixed(2)} ms against ${median(pair.raw).toFixed(2)} ms raw`;
    const ofRaw = (pair) => median(pair.http) / median(pair.raw);
    return [
      row({
        what: 'start + wait of `true` over HTTP: p50 of raw spawn until close',
        value: ofRaw(one),
        unit: 'times',
        atMost: 0.9,
        note: against(one),
      }),
      row({
        what: `the same, of the first ${TURNS} of a new server`,
        value: ofRaw(first),
        unit: 'times',
        note: against(first),
      }),
      row({
        what: `${CROWD} of them at once: of ${CROWD} raw spawns at once`,
        value: ofRaw(many),
        unit: 'times',
        atMost: 0.7,
        note: against(many),
      }),
      row({
        what: '64 MB of output, start to answer: of reading it raw',
        value: ofRaw(big),
        unit: 'times',
        atMost: 1,
        note: against(big),
      }),
      row({
        what: `the same, of the first ${BIG_FIRST} of these ${BIG_ROUNDS}`,
        value: ofRaw(bigFirst),
        unit: 'times',
        note: against(bigFirst),
      }),
      row({
        what: 'exit to answer over HTTP: p50 of the raw exit event',
        value: ofRaw(exits),
        unit: 'times',
        atMost: 1.8,
        note: against(exits),
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

async function inTurns(rawWork, httpWork, { turns, warmUp, restMs = 0 }) {
  const samples = { raw: [], http: [] };
  for (let turn = -warmUp; turn < turns; turn += 1) {
    if (restMs > 0) await rest(restMs);
    const [rawMs, httpMs] = [await timed(rawWork), await timed(httpWork)];
    if (turn < 0) continue;
    samples.raw.push(rawMs);
    samples.http.push(httpMs);
  }
  return samples;
}

/** Each work measures itself. */
async function bySelf(rawWork, httpWork) {
  const samples = { raw: [], http: [] };
  for (let turn = -20; turn < EXITS; turn += 1) {
    const [rawMs, httpMs] = [await rawWork(), await httpWork()];
    if (turn < 0) continue;
    samples.raw.push(rawMs);
    samples.http.push(httpMs);
  }
  return samples;
}

function finished({ running, exit_code: code }) {
  if (running || code !== 0) throw new Error(`running ${running}, exit code ${code}`);
}

function raw(command) {
  return new Promise((resolve, reject) => {
    const child = spawn('sh', ['-c', command], { stdio: ['ignore', 'pipe', 'pipe'] });
    child.stdout.on('data', () => undefined);
    child.stderr.on('data', () => undefined);
    child.once('error', reject).once('close', resolve);
  });
}

async function bigThrough(server) {
  const { id } = await server.start({ command: BIG });
  const { truncated } = await server.wait(id);
  if (truncated.original_bytes !== BIG_BYTES)
    throw new Error(`${truncated.original_bytes} bytes came`);
}

/** A shell that ends by itself when it is told so through a named pipe: from the word to the event. */
async function rawExit(fifo) {
  const child = spawn('sh', ['-c', fifo.command], { stdio: ['ignore', 'pipe', 'pipe'] });
  const say = await fifo.opened();
  await settle();
  const ended = new Promise((resolve) => child.once('exit', () => resolve(nowMs())));
  return say(ended);
}

/** The same, from the word to the answer. */
async function exitThrough(server, fifo) {
  const { id } = await server.start({ command: fifo.command });
  const ended = server.wait(id).then(() => nowMs());
  const say = await fifo.opened();
  while ((await server.health()).parkedWaits < 1);
  await settle();
  return say(ended);
}

/** Opening it for writing waits until the shell reads. */
class Fifo {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
    this.path = join(this.folder, 'fifo');
    execFileSync('sh', ['-c', `mkfifo ${this.path}`]);
    this.command = `read _ < ${this.path}`;
  }

  async opened() {
    const file = await open(this.path, 'w');
    return async (ended) => {
      const began = nowMs();
      writeSync(file.fd, '\n');
      const endedMs = await ended;
      await file.close();
      return endedMs - began;
    };
  }

  remove() {
    rmSync(this.folder, { recursive: true });
  }
}

/** Whatever the calls before have left to do is done. */
function settle() {
  return rest(5);
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
