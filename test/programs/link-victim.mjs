// A client that is killed again and again: goes on with twenty processes from its own notes. Its notes are the raw
// records it was given, appended as they came; a torn end is cut when it starts again. Prints a dot per page.

import { appendFileSync, existsSync, readFileSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { connectKeeper, decodeRecords } from '../../dist/index.js';
import { checkRecord } from '../../dist/protocol/record.js';

const [home, notes, count, seed] = process.argv.slice(2);
const link = await connectKeeper({ home, env: process.env, startIfMissing: false });

await Promise.all(Array.from({ length: Number(count) }, (_, index) => follow(index)));

async function follow(index) {
  for (let generation = generationOf(index); ; generation += 1) {
    const key = `p${index}-g${generation}`;
    const { process: started } = await link.start('victim', {
      ...command(key),
      key,
      streams: 'separate',
    });
    let { after, offset, ended } = cursorOf(key);
    while (!ended) {
      const page = await link.read('victim', {
        id: started.id,
        after,
        offset,
        maxBytes: 16_384,
        waitMs: 60_000,
      });
      if (page.missed) throw new Error(`missed ${JSON.stringify(page.missed)}`);
      appendFileSync(join(notes, key), page.records);
      ({ nextAfter: after, nextOffset: offset, end: ended } = page);
      process.stdout.write('.');
    }
  }
}

/** Lines that say who and where they are, some slowly, some in bursts; the exit code is part of the key too. */
function command(key) {
  let hash = Number(seed);
  for (const letter of key) hash = (hash * 31 + letter.charCodeAt(0)) % 1_000_003;
  const lines = 40 + (hash % 160);
  const width = 10 + (hash % 1500);
  const script = `$|=1; for $i (0..${lines}) { print STDOUT "${key} $i ", "x" x ${width}, "\\n"; print STDERR "e$i\\n" if $i % 7 == 0; select(undef, undef, undef, 0.002) if $i % 3 } exit ${hash % 200};`;
  return { argv: ['perl', '-e', script] };
}

function generationOf(index) {
  for (let generation = 0; ; generation += 1) {
    if (!cursorOf(`p${index}-g${generation}`).ended) return generation;
  }
}

function cursorOf(key) {
  const path = join(notes, key);
  if (!existsSync(path)) return { after: 0, offset: 0, ended: false };
  const bytes = readFileSync(path);
  let good = 0;
  for (let check = checkRecord(bytes, 0); check.kind === 'good'; check = checkRecord(bytes, good))
    good += check.bytes;
  if (good < bytes.length) truncateSync(path, good);
  let cursor = { after: 0, offset: 0, ended: false };
  for (const event of decodeRecords(bytes.subarray(0, good))) {
    const length = event.kind === 'output' ? event.data.length : 0;
    cursor = { after: event.seq, offset: event.offset + length, ended: event.kind === 'closed' };
  }
  return cursor;
}
