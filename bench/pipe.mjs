// Output into the journal: one gigabyte in bulk, and fifty megabytes of short lines, each written by itself. Against
// Node reading the same program's output by data events, in turns.

import { spawn } from 'node:child_process';
import { runThrough } from './support/keeper.mjs';
import { MiB, row } from './support/rows.mjs';
import { median, timed } from './support/statistics.mjs';

const LINES_PROGRAM = new URL('./programs/lines.pl', import.meta.url).pathname;
const GIGABYTE = 1024 * MiB;
const LINE_BYTES = 20;
const LINES = Math.ceil((50 * MiB) / LINE_BYTES);

const bulk = { name: 'bulk', argv: ['head', '-c', String(GIGABYTE), '/dev/zero'], bytes: GIGABYTE };
const lines = {
  name: 'lines',
  argv: ['perl', LINES_PROGRAM, String(LINES)],
  bytes: LINES * LINE_BYTES,
};

export async function run(context) {
  const keeper = await context.openKeeper();
  try {
    const inBulk = await measure(keeper.link, bulk, 4, context);
    const inLines = await measure(keeper.link, lines, 5, context);
    return [
      row({
        what: '1 GiB through one pipe (head -c): speed of raw',
        value: ratio(inBulk),
        unit: 'times',
        atLeast: 0.5,
        note: speeds(inBulk, bulk),
      }),
      row({
        what: '50 MiB of flushed 20-byte lines: speed of raw',
        value: ratio(inLines),
        unit: 'times',
        atLeast: 1,
        note: speeds(inLines, lines),
      }),
      row({
        what: 'the same, into the journal',
        value: lines.bytes / (median(inLines.keeper) / 1000),
        unit: 'rate',
      }),
    ];
  } finally {
    await keeper.stop();
  }
}

async function measure(link, program, rounds, context) {
  const ms = { raw: [], keeper: [] };
  for (let round = 0; round < rounds; round += 1) {
    context.progress(`${program.name}, round ${round + 1} of ${rounds}`);
    const raw = await timed(() => readRaw(program));
    const keeper = await timed(() => readKept(link, program));
    // The first round warms both.
    if (round === 0) continue;
    ms.raw.push(raw);
    ms.keeper.push(keeper);
  }
  return ms;
}

function ratio({ raw, keeper }) {
  return median(raw.map((ms, round) => ms / keeper[round]));
}

function speeds({ raw, keeper }, { bytes }) {
  const rate = (samples) => `${(bytes / 1000 / median(samples)).toFixed(0)} MB/s`;
  return `${rate(keeper)} against ${rate(raw)} raw`;
}

function readRaw({ argv: [file, ...args], bytes }) {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    let seen = 0;
    child.stdout.on('data', (chunk) => (seen += chunk.length));
    child.once('error', reject).once('close', () => {
      if (seen === bytes) resolve();
      else reject(new Error(`${seen} bytes instead of ${bytes}`));
    });
  });
}

async function readKept(link, { argv, bytes }) {
  const { bytes: counts } = await runThrough(link, { argv }, 'closed');
  if (counts.total !== bytes || counts.lost !== 0)
    throw new Error(`kept ${JSON.stringify(counts)} of ${bytes} bytes`);
}
