// Bounds on time and memory that a test must not assert: what light commands cost, how soon a full home is served, and
// that hostile or large input costs in proportion to its size.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectKeeper } from '../dist/index.js';
import { stripAnsi } from '../dist/base/bytes/ansi.js';
import { systemClock } from '../dist/base/clock.js';
import { headTail } from '../dist/journal/read/head-tail.js';
import { Matcher } from '../dist/journal/search/matcher.js';
import { encodeFrame } from '../dist/keeper/frames.js';
import { openKeeper, OWNER, runThrough } from './support/keeper.mjs';
import { MiB, row } from './support/rows.mjs';
import { inFlight, timed } from './support/statistics.mjs';

const MAIN = new URL('../dist/cli/main.js', import.meta.url).pathname;
const ENDED = 1000;
const LINE_BYTES = 100_000_000;

export async function run(context) {
  context.progress('light commands');
  const light = lightCommands();
  context.progress('growth of cost with size');
  const growth = [
    ...['\x1b]', '\x1b', '\x1b[1;', '\x1bP\x1b'].map((unit) =>
      costRatio((size) => stripAnsi(unit.repeat(size * 100_000)).charCodeAt(0)),
    ),
    ...['\n', 'x', '\xff'].map((unit) =>
      costRatio((size) => {
        const head = Buffer.alloc(size * 2 * MiB, unit, 'latin1');
        headTail({ head, tail: head, tailOffset: head.length, totalBytes: head.length * 2 });
      }),
    ),
  ];
  context.progress('one line of 100 MB');
  const searched = await searchMemory();
  context.progress('a client that reads nothing');
  const unread = await unreadMemory();
  context.progress(`${ENDED} ended processes`);
  const serves = await restart();
  return [
    row({
      what: '`version` and `help run`: processor time above Node',
      value: light,
      unit: 'ms',
      atMost: 60,
    }),
    row({
      what: 'hostile text of 4 times the size: processor time',
      value: Math.max(...growth),
      unit: 'times',
      atMost: 10,
      note: 'quadratic would be 16; worst of seven kinds',
    }),
    row({
      what: '100 MB in one line: memory of a search',
      value: searched,
      unit: 'bytes',
      atMost: 100 * MiB,
    }),
    row({
      what: '200 large pages that a client does not read: memory of the keeper',
      value: unread,
      unit: 'bytes',
      atMost: 64 * MiB,
    }),
    row({
      what: `a server in front of ${ENDED} ended processes: first answer`,
      value: serves,
      unit: 'ms',
      atMost: 1000,
      note: 'keeper included',
    }),
  ];
}

/** Best of several, in turns: the load of the machine only adds. */
function lightCommands() {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
  const hook = join(folder, 'processor-time.cjs');
  writeFileSync(
    hook,
    `process.on('exit', () => {
      const { user, system } = process.cpuUsage();
      require('node:fs').writeSync(2, \`[\${user + system} us]\`);
    });`,
  );
  const best = [Infinity, Infinity, Infinity];
  const commands = [
    ['-e', '0'],
    [MAIN, 'version'],
    [MAIN, 'help', 'run'],
  ];
  for (let round = 0; round < 15; round += 1)
    for (const [index, args] of commands.entries()) {
      const { stderr } = spawnSync(process.execPath, ['--require', hook, ...args], {
        env: { ...process.env, HOLDFAST_HOME: folder },
        encoding: 'utf8',
      });
      best[index] = Math.min(best[index], Number(/\[(\d+) us\]$/.exec(stderr)[1]) / 1000);
    }
  rmSync(folder, { recursive: true, force: true });
  return Math.max(best[1], best[2]) - best[0];
}

/** Processor time for four times the size, as a multiple. */
function costRatio(work) {
  const spent = (size) => {
    const from = process.cpuUsage();
    work(size);
    const { user, system } = process.cpuUsage(from);
    return user + system;
  };
  spent(1);
  const best = (size) => Math.min(spent(size), spent(size), spent(size));
  return best(4) / Math.max(best(1), 1000);
}

async function searchMemory() {
  const matcher = new Matcher({ clock: systemClock });
  let largest = 0;
  const source = {
    start: 0,
    end: LINE_BYTES,
    read(offset, maxBytes) {
      largest = Math.max(largest, process.memoryUsage().rss);
      const bytes = Buffer.alloc(Math.min(maxBytes, LINE_BYTES - offset), 'x');
      return Promise.resolve(bytes.length > 0 ? { offset, bytes } : undefined);
    },
  };
  const before = process.memoryUsage().rss;
  await matcher.search(source, { kind: 'regex', pattern: 'NE+DLE' });
  await matcher.close();
  return largest - before;
}

async function unreadMemory() {
  const keeper = await openKeeper();
  try {
    const { id } = await runThrough(
      keeper.link,
      { command: 'head -c 40000000 /dev/zero' },
      'closed',
    );
    const before = await keeper.rssBytes();
    const stalled = connect(join(keeper.home, 'keeper.sock')).pause();
    for (let call = 1; call <= 200; call += 1) {
      const params = { id, after: 1, maxBytes: 4_000_000 };
      stalled.write(Buffer.concat(encodeFrame({ id: call, op: 'read', owner: OWNER, params })));
    }
    for (let round = 0; round < 50; round += 1) await runThrough(keeper.link, { command: 'true' });
    const used = (await keeper.rssBytes()) - before;
    stalled.destroy();
    return used;
  } finally {
    await keeper.stop();
  }
}

/** From the start of a server in a home without a keeper until it has answered a request. */
async function restart() {
  const home = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
  const first = await connectKeeper({ home });
  await inFlight(ENDED, 8, () => runThrough(first, { command: 'true' }, 'closed'));
  await first.stop();
  let answered = 0;
  const took = await timed(async () => {
    const server = spawn(
      process.execPath,
      [MAIN, 'serve', '--json', '--home', home, '--token-file', join(home, 'token')],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    const [line] = await once(server.stdout, 'data');
    const { url, tokenFile } = JSON.parse(line);
    const headers = { authorization: `Bearer ${readFileSync(tokenFile, 'utf8').trim()}` };
    const answer = await fetch(`${url}/v1/processes?limit=1`, { headers });
    answered = (await answer.json()).total;
    server.kill('SIGTERM');
  });
  const last = await connectKeeper({ home });
  await last.stop();
  rmSync(home, { recursive: true, force: true });
  if (answered !== ENDED) throw new Error(`the server knows ${answered} of ${ENDED} processes`);
  return took;
}
