// The soak: thousands of short processes through one keeper, and nothing grows. `npm run test:soak -- --count 3000` is
// a short run.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { defaultLimits } from '../dist/index.js';
import { finished, openKeeper, OWNER, waitFor } from './support/keeper.mjs';
import { machineLine, watchMachine } from './support/machine.mjs';
import { MiB, missed, row, table } from './support/rows.mjs';
import { inFlight } from './support/statistics.mjs';

const AT_ONCE = 12;
/** Memory and descriptors are compared with what they were after so many. */
const SETTLED_AFTER = 2000;
/** After so many, all of them ended, everything is counted; and a few times in between. */
const ROUND = 1000;
const BETWEEN = 250;
const FD_SLACK = 4;

const { values } = parseArgs({
  options: { count: { type: 'string', default: '20000' }, json: { type: 'boolean' } },
});
const count = Number(values.count);
if (!Number.isInteger(count) || count <= 0) {
  process.stderr.write('--count needs a whole number above 0.\n');
  process.exit(2);
}

const say = (text) => process.stderr.write(`${text}\n`);
say(machineLine());
const watched = watchMachine();
const keeper = await openKeeper();
/** Taken while nothing is under way, and while processes come and go. */
const [calm, underWay] = [[], []];
const began = performance.now();
let collected;
let took;
try {
  await soak();
  took = performance.now() - began;
  collected = await keeper.memory();
} finally {
  await keeper.stop();
}
report();

async function soak() {
  for (let done = 0; done < count;) {
    const size = Math.min(ROUND, count - done);
    const first = done;
    await inFlight(size, AT_ONCE, async (index) => {
      await one(first + index);
      if ((index + 1) % BETWEEN === 0) underWay.push(await sample(first + index + 1));
    });
    done += size;
    calm.push(await sample(done));
    if (done % (2 * ROUND) === 0) say(describe(calm.at(-1)));
  }
}

/** The whole life of one process; every hundredth one's output is looked at too. */
async function one(number) {
  const { process: started } = await keeper.link.start(OWNER, { command: `echo ${number}` });
  const ended = finished(await waitFor(keeper.link, started.id, 'closed'));
  const expected = `${number}\n`;
  if (ended.bytes.total !== expected.length)
    throw new Error(`process ${number} printed ${ended.bytes.total} bytes`);
  if (number % 100 !== 0) return;
  const { text } = await keeper.link.text(OWNER, { id: started.id });
  if (text !== expected) throw new Error(`process ${number} printed ${JSON.stringify(text)}`);
}

async function sample(done) {
  const { rssBytes, ended } = await keeper.link.health(OWNER, {});
  const { files, bytes } = keeper.journals();
  return { done, rssBytes, ended, files, bytes, fds: openFiles(), zombies: zombies() };
}

/** Without journals: some are made ahead, at times more and at times fewer. Those that remain are counted as files. */
function openFiles() {
  const folder = `/proc/${keeper.pid}/fd`;
  return readdirSync(folder).filter((fd) => !isJournal(`${folder}/${fd}`)).length;
}

function isJournal(link) {
  try {
    return readlinkSync(link).endsWith('.hfj');
  } catch {
    return false;
  }
}

/** Children of the keeper that have ended and were not reaped. */
function zombies() {
  const threads = readdirSync(`/proc/${keeper.pid}/task`);
  const children = threads.flatMap((thread) =>
    readFileSync(`/proc/${keeper.pid}/task/${thread}/children`, 'latin1')
      .split(' ')
      .filter(Boolean),
  );
  return children.filter((pid) => {
    try {
      const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
      return text.slice(text.lastIndexOf(')') + 2)[0] === 'Z';
    } catch {
      return false;
    }
  }).length;
}

function describe({ done, rssBytes, files, fds }) {
  return `${done} done: RSS ${(rssBytes / MiB).toFixed(1)} MiB, ${fds} descriptors, ${files} journal files`;
}

function report() {
  const machine = watched();
  const { closedCount } = defaultLimits;
  const settled = calm.find(({ done }) => done >= SETTLED_AFTER) ?? calm[0];
  const final = calm.at(-1);
  const worst = (samples, of) =>
    Math.max(0, ...samples.filter(({ done }) => done > settled.done).map(of));
  const growth = ({ rssBytes }) => rssBytes - settled.rssBytes;
  const note = `from ${(settled.rssBytes / MiB).toFixed(1)} to ${(final.rssBytes / MiB).toFixed(1)} MiB`;
  const rows = [
    row({
      what: `RSS growth after the first ${settled.done}`,
      value: growth(final),
      unit: 'bytes',
      under: 32 * MiB,
      note,
    }),
    row({
      what: 'the same, worst of all samples',
      value: worst([...calm, ...underWay], growth),
      unit: 'bytes',
      note: `${(collected.rss / MiB).toFixed(1)} MiB after a forced collection`,
    }),
    row({
      what: 'open descriptors: furthest from their first count',
      value: worst(calm, ({ fds }) => Math.abs(fds - settled.fds)),
      unit: 'count',
      atMost: FD_SLACK,
      note: `${settled.fds} first, ${final.fds} at the end`,
    }),
    row({
      what: 'zombies, worst of the calm samples',
      value: worst(calm, ({ zombies }) => zombies),
      unit: 'count',
      atMost: 0,
    }),
    row({
      what: 'journal files beyond retention, under way',
      value: worst(underWay, ({ files }) => files - closedCount - AT_ONCE),
      unit: 'count',
      atMost: 0,
      note: `${closedCount} closed and ${AT_ONCE} live ones may have one each`,
    }),
    row({
      what: 'journal files beyond retention, at the end',
      value: Math.max(0, final.files - Math.min(closedCount, count)),
      unit: 'count',
      atMost: 0,
      note: `${final.files} files, ${final.ended} ended processes known`,
    }),
    row({
      what: 'processes per second',
      value: count / (took / 1000),
      unit: 'perSecond',
      note: `${count} in all; others kept ${machine.othersCores.toFixed(2)} cores busy`,
    }),
  ].map((each) => ({ figure: 'soak', ...each }));
  const failed = missed(rows);
  process.stdout.write(
    values.json
      ? `${JSON.stringify({ machine: machineLine(), rows, calm, underWay }, undefined, 2)}\n`
      : `\n${table(rows)}\n`,
  );
  say(failed === 0 ? '\nEvery bar is met.' : `\n${failed} bars are missed.`);
  process.exitCode = failed === 0 ? 0 : 1;
}
