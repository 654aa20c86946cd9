// Limits at work: how soon a family that crosses a watched limit has ended, and what others notice of a fork bomb and of a program
// that fills memory.

import { setTimeout as sleep } from 'node:timers/promises';
import { Echo } from './support/echo.mjs';
import { OWNER, waitFor } from './support/keeper.mjs';
import { MiB, row } from './support/rows.mjs';
import { median, nowMs, percentile } from './support/statistics.mjs';

const FAMILIES = 30;
const PIDS = 20;
const MEMORY = 100 * MiB;
const PIECE = 4 * MiB;

const perl = (code) => ['perl', '-MTime::HiRes=clock_gettime,CLOCK_MONOTONIC', '-e', code];
const SAY =
  '$| = 1; sub crossed { printf "crossed %.3f\\n", clock_gettime(CLOCK_MONOTONIC) * 1000 }';
/** Each goes on after it has crossed its limit, with a child in a session of its own. */
const CROSSERS = {
  memory: {
    argv: perl(
      `${SAY} if (fork == 0) { setpgrp; sleep 1000 } sub size { open my $f, "<", "/proc/self/statm"; (split " ", <$f>)[1] * 4096 }
      my @all; my $said; for (;;) { push @all, "x" x ${PIECE}; if (!$said && size() > ${MEMORY}) { crossed(); $said = 1; sleep 1000 } }`,
    ),
    limits: { memory: MEMORY },
  },
  pids: {
    argv: perl(
      `${SAY} for (1 .. ${PIDS}) { if (fork == 0) { setpgrp; sleep 1000 } } crossed(); sleep 1000`,
    ),
    limits: { pids: PIDS },
  },
};

const WORKERS = 20;
const BESIDE_MS = 10_000;
/** Of one worker after the other. */
const PAUSE_MS = 5;
const HOSTILE = {
  'a fork bomb': {
    // It would end by itself at 500: where nothing but a look holds it, the machine must live.
    command: 'f() { if [ $1 -gt 0 ]; then f $(($1 - 1)) & f $(($1 - 1)) & fi; sleep 1000; }; f 8',
    limits: { pids: 50 },
  },
  'a program that fills memory': {
    argv: ['perl', '-e', `my @all; push @all, "x" x ${PIECE} while 1`],
    limits: { memory: MEMORY },
  },
};

export async function run(context) {
  return [...(await watchedRows(context)), ...(await besideRows(context))];
}

async function watchedRows(context) {
  const keeper = await context.openKeeper({ groups: false });
  try {
    const rows = [];
    for (const [name, { argv, limits }] of Object.entries(CROSSERS)) {
      context.progress(`${FAMILIES} families cross a watched limit of ${name}`);
      const took = [];
      for (let n = 0; n < FAMILIES; n += 1) {
        // At another moment between two looks.
        await sleep((n * 37) % 200);
        took.push(await endedAfterMs(keeper.link, { argv, limits, enforce: 'best' }));
      }
      rows.push(
        row({
          what: `a watched limit of ${name}: from the crossing until nobody is left, longest of ${FAMILIES}`,
          value: Math.max(...took),
          unit: 'ms',
          under: 500,
          note: `p50 ${median(took).toFixed(0)} ms`,
        }),
      );
    }
    return rows;
  } finally {
    await keeper.stop();
  }
}

async function endedAfterMs(link, spec) {
  const { process } = await link.start(OWNER, spec);
  const { id } = process;
  const { causes, settled } = await waitFor(link, id, 'settled');
  const endedMs = nowMs();
  const { text } = await link.text(OWNER, { id });
  const crossedMs = Number(/crossed ([\d.]+)/.exec(text)?.[1]);
  if (!settled || causes?.length !== 1 || Number.isNaN(crossedMs))
    throw new Error(`${JSON.stringify(spec.limits)} was not watched: ${JSON.stringify(causes)}`);
  return endedMs - crossedMs;
}

async function besideRows(context) {
  const keeper = await context.openKeeper();
  try {
    const means = await keeper.link.enforcement(OWNER, {});
    const echoes = Array.from({ length: WORKERS }, () => new Echo(keeper.link));
    for (const echo of echoes) await echo.open();
    await echoesFor(echoes, 2000);
    const calm = await echoesFor(echoes, BESIDE_MS / 2);
    const rows = [];
    for (const [name, spec] of Object.entries(HOSTILE)) {
      context.progress(`${name} beside ${WORKERS} processes`);
      const hostile = new Repeated(keeper.link, { ...spec, enforce: 'best' });
      const beside = await echoesFor(echoes, BESIDE_MS);
      const times = await hostile.stop();
      const { by } = means[Object.keys(spec.limits)[0]];
      rows.push(
        row({
          what: `echo of ${WORKERS} processes beside ${name}, p99`,
          value: percentile(beside, 0.99),
          unit: 'ms',
          // Where it is only watched, it has the machine until the next look.
          ...(by === 'cgroup' && { under: 50 }),
          note: `by ${by}, ended ${times} times; p50 ${median(beside).toFixed(2)} ms, worst ${Math.max(...beside).toFixed(0)} ms; calm p99 ${percentile(calm, 0.99).toFixed(1)} ms`,
        }),
      );
    }
    return rows;
  } finally {
    await keeper.stop();
  }
}

async function echoesFor(echoes, ms) {
  const samples = [];
  for (const untilMs = nowMs() + ms; nowMs() < untilMs;)
    for (const echo of echoes) {
      samples.push(await echo.once());
      await sleep(PAUSE_MS);
    }
  return samples;
}

/** Started again whenever it was ended. */
class Repeated {
  #link;
  #spec;
  #stopped = false;
  #times = 0;
  #running;
  #id;

  constructor(link, spec) {
    this.#link = link;
    this.#spec = spec;
    this.#running = this.#loop();
  }

  async #loop() {
    while (!this.#stopped) {
      const { process } = await this.#link.start(OWNER, this.#spec);
      const { id } = process;
      this.#id = id;
      await waitFor(this.#link, id, 'exit');
      await killed(this.#link, id);
      await waitFor(this.#link, id, 'settled');
      const { causes } = await this.#link.get(OWNER, { id });
      if (causes?.length > 0) this.#times += 1;
    }
  }

  /** How often a limit struck. */
  async stop() {
    this.#stopped = true;
    await killed(this.#link, this.#id);
    await this.#running;
    return this.#times;
  }
}

/** It may have ended by itself. */
async function killed(link, id) {
  try {
    await link.signal(OWNER, { id, signal: 'KILL' });
  } catch (error) {
    if (error.code !== 'not_running') throw error;
  }
}
