// Two owners with a token each: what alice notices of what bob does. Her doings are measured alone and beside an attack in
// turns, so that what else the machine does falls upon both; she stays below the rate of starts, which would pace her.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Attacker } from './support/attacker.mjs';
import { HttpCaller, tokenFor } from './support/http-caller.mjs';
import { row } from './support/rows.mjs';
import { openServer } from './support/server.mjs';
import { nowMs, percentile, timed } from './support/statistics.mjs';

/** Alone and beside the attack so often, and so many rounds each time: the p99 is the sixth of the worst 600. OWNERS_PHASES: fewer. */
const PHASES = Number(process.env.OWNERS_PHASES ?? 6);
const ROUNDS = 100;
const WARM_UP = 150;
/** A token may start 50 a second. */
const ROUND_MS = 25;
const RESULTS = 20;
const MOST_TIMES = 3;
const NAMES = [
  'slow patterns',
  '2,000 short starts',
  'pictures of 1000 × 1000',
  'answers that nobody reads',
  'terminals',
];
const DOINGS = ['start', 'search', 'read'];
/** Alice's own client would be on another machine: it does not wait for a processor behind the server or what bob started. */
const CLIENT_NICE = -15;

export async function run(context) {
  // The shells of terminals would read the start-up files of whoever runs this, and start what these say.
  const home = mkdtempSync(join(tmpdir(), 'holdfast-owners-'));
  const own = process.env.HOME;
  process.env.HOME = home;
  try {
    return await measureAll(context);
  } finally {
    process.env.HOME = own;
    rmSync(home, { recursive: true, force: true });
  }
}

async function measureAll(context) {
  const rows = [];
  for (const name of chosen()) {
    context.progress(name);
    // Before it is raised: what is started takes the priority of whoever starts it.
    const server = await openServer({ profile: context.profile });
    setOwnPriority(CLIENT_NICE);
    const alice = new HttpCaller(server.port, tokenFor(server.home, 'alice'));
    const attacker = new Attacker({ name, port: server.port, token: tokenFor(server.home, 'bob') });
    try {
      const results = await Promise.all(
        Array.from({ length: RESULTS }, (_, n) => alice.start({ command: `echo result ${n}` })),
      );
      await measure(alice, WARM_UP, emptySamples());
      const [alone, beside] = [emptySamples(), emptySamples()];
      for (let phase = 0; phase < PHASES; phase += 1) {
        await measure(alice, ROUNDS, alone);
        await attacker.begin();
        await measure(alice, ROUNDS, beside);
        await attacker.end();
      }
      const kept = await countKept(alice, results);
      rows.push(...rowsOf(name, { alone, beside, kept }));
    } finally {
      await attacker.close();
      alice.close();
      await server.stop();
      setOwnPriority(0);
    }
  }
  return rows;
}

/** OWNERS names some of them, separated by semicolons. */
function chosen() {
  const names = process.env.OWNERS?.split(';');
  return NAMES.filter((name) => names?.includes(name) ?? true);
}

/** Where sessions are weighed against each other, a priority counts only within one: then that of the session counts. */
function setOwnPriority(nice) {
  try {
    setPriority(process.pid, nice);
    writeFileSync('/proc/self/autogroup', String(nice));
  } catch {
    // Not as root: then it waits with the others, alone and beside the attack. Or sessions are not weighed.
  }
}

function rowsOf(name, { alone, beside, kept }) {
  const p99 = (samples) => percentile(samples, 0.99);
  const times = DOINGS.map((doing) =>
    row({
      what: `${name}: p99 of alice's ${doing}, of alone`,
      value: p99(beside[doing]) / p99(alone[doing]),
      unit: 'times',
      atMost: MOST_TIMES,
      note: `p50 ${told(percentile(alone[doing], 0.5), percentile(beside[doing], 0.5))}, p99 ${told(p99(alone[doing]), p99(beside[doing]))} ms`,
    }),
  );
  const what = `${name}: alice's results that are there, of ${RESULTS}`;
  return [...times, row({ what, value: kept, unit: 'count', atLeast: RESULTS })];
}

const told = (before, now) => `${before.toFixed(1)} → ${now.toFixed(1)}`;

const emptySamples = () => Object.fromEntries(DOINGS.map((doing) => [doing, []]));

/** Milliseconds of start + wait, of a search and of a read, in turns. */
async function measure(alice, rounds, samples) {
  for (let turn = 0; turn < rounds; turn += 1) {
    const beganMs = nowMs();
    let id = '';
    samples.start.push(
      await timed(async () => {
        id = await alice.start({ command: 'echo one; echo two' });
        await alice.ended(id);
      }),
    );
    samples.search.push(
      await timed(() => alice.json('GET', `/v1/processes/${id}/search?pattern=t.o&kind=regex`)),
    );
    samples.read.push(await timed(() => alice.json('GET', `/v1/processes/${id}/events`)));
    // Else her own processes would push out her results: they are more than her share of those that are kept.
    await alice.ask('DELETE', `/v1/processes/${id}`);
    const restMs = ROUND_MS - (nowMs() - beganMs);
    if (restMs > 0) await sleep(restMs);
  }
}

async function countKept(alice, results) {
  let kept = 0;
  for (const [n, id] of results.entries()) {
    const { status, text } = await alice.ask('GET', `/v1/processes/${id}/text`);
    if (status === 200 && JSON.parse(text).text === `result ${n}\n`) kept += 1;
  }
  return kept;
}
