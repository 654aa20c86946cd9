// The dashboard in a real browser: what it loads, how soon it shows something, ten thousand rows, a log of 60 MB, a terminal
// that is typed into, a wall of busy terminals, and hostile output. BENCH_PARTS=typing,log,bomb,wall,list takes some of them.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';
import {
  heapBytes,
  linkTo,
  longestTask,
  openBrowser,
  openPage,
  UNLIMITED_FRAMES,
} from './support/page.mjs';
import { KiB, MiB, row } from './support/rows.mjs';
import { openServer } from './support/server.mjs';
import { inFlight, median, nowMs, percentile, timed } from './support/statistics.mjs';

const ROWS = 10_000;
const LOG_LINES = 1_000_000;
const KEYS = 100;
const LONGEST_ECHO_MS = 10_000;
const JUMPS = 40;
const TILES = 24;
const WALL_MS = 60_000;
const LIMITS = { closedCount: 20_000 };
const ASSETS = new URL('../dist/dashboard/assets/', import.meta.url);
const BOMBS = JSON.parse(
  readFileSync(new URL('../test/support/bombs.json', import.meta.url), 'utf8'),
);

export async function run({ progress }) {
  const server = await openServer({ limits: LIMITS });
  const browser = await openBrowser();
  const found = { server, browser, faults: [], progress };
  try {
    const rows = [...sizeRows()];
    const parts = Object.entries({ typingRows, logRows, bombRows, wallRows, listRows });
    const wanted = process.env.BENCH_PARTS?.split(',');
    for (const [name, measure] of parts) {
      const part = name.replace('Rows', '');
      if (wanted && !wanted.includes(part)) continue;
      progress(part);
      const taken = await measure(found);
      for (const { what, measured, note } of taken) progress(`${what}: ${measured} ${note}`);
      rows.push(...taken);
    }
    const what = 'violations of the policy, exceptions, requests to other origins';
    rows.push(
      row({ what, value: found.faults.length, unit: 'count', atMost: 0, note: found.faults[0] }),
    );
    return rows;
  } finally {
    await browser.close();
    await server.stop();
  }
}

function sizeRows() {
  const html = readFileSync(new URL('../index.html', ASSETS), 'utf8');
  const scripts = readdirSync(ASSETS).filter((name) => name.endsWith('.js.gz'));
  const bytesOf = (names) =>
    names.reduce((sum, name) => sum + statSync(new URL(name, ASSETS)).size, 0);
  const first = scripts.filter((name) => html.includes(name.replace(/\.gz$/, '')));
  const terminal = scripts.filter((name) => name.startsWith('screen-view-'));
  return [
    row({
      what: 'script before the first paint, packed',
      value: bytesOf(first),
      unit: 'bytes',
      under: 40 * KiB,
    }),
    row({
      what: 'script of a terminal, packed',
      value: bytesOf(terminal),
      unit: 'bytes',
      under: 140 * KiB,
    }),
  ];
}

async function opened({ server, browser, faults }) {
  const watched = await openPage(browser, server.home);
  return {
    ...watched,
    close: async () => {
      faults.push(...watched.faults);
      await watched.close();
    },
  };
}

const terminal = async ({ server }, script, name) => {
  const argv = ['/bin/sh', '-c', script];
  return (await server.call('POST', '/v1/terminals', { argv, name })).process.id;
};

const kill = ({ server }, id) => server.call('DELETE', `/v1/processes/${id}?force=true`);

async function typingRows(found) {
  const id = await terminal(found, 'stty -icanon; exec cat >/dev/null', 'echo');
  const raw = await rawEchoes(found, id);
  const limited = await drawnEchoes(found, id);
  const browser = await openBrowser(...UNLIMITED_FRAMES);
  const drawn = await drawnEchoes({ ...found, browser }, id);
  await browser.close();
  const after = await rawEchoes(found, id);
  await kill(found, id);
  const rawMs = median([...raw, ...after]);
  const [p50, p99] = [median(drawn), percentile(drawn, 0.99)].map((ms) => ms.toFixed(1));
  const at60 = `at 60 Hz p50 ${median(limited).toFixed(1)} ms, for a drawn frame waits up to 16.7 ms`;
  return [
    row({
      what: 'keystroke until it is drawn, of raw attach',
      value: median(drawn) / rawMs,
      unit: 'times',
      atMost: 2.5,
      note: `p50 ${p50} ms, p99 ${p99} ms without a limit of frames, against ${rawMs.toFixed(1)} ms raw; ${at60}`,
    }),
  ];
}

/** Milliseconds from the key to its echo among the drawn rows. */
async function drawnEchoes(found, id) {
  const { page, origin, close } = await opened(found);
  await page.goto(`${origin}/#/p/api/${id}`);
  await page.waitForSelector('.xterm-rows');
  await page.keyboard.press('t');
  await page.waitForSelector('.screen.held');
  await page.evaluate(() => {
    globalThis.drawn = [];
    let began;
    addEventListener('keydown', () => (began = performance.now()), true);
    new MutationObserver(() => {
      if (began !== undefined) globalThis.drawn.push(performance.now() - began);
      began = undefined;
    }).observe(document.querySelector('.xterm-rows'), {
      subtree: true,
      childList: true,
      characterData: true,
    });
  });
  for (let key = 0; key < KEYS; key += 1) {
    await page.keyboard.press('abcdefgh'[key % 8]);
    await page.waitForFunction((count) => globalThis.drawn.length >= count, key + 1);
  }
  const drawn = await page.evaluate(() => globalThis.drawn);
  await close();
  return drawn;
}

/** Milliseconds from a typed byte to its echo, over the plain WebSocket of a terminal. */
async function rawEchoes({ server }, id, count = KEYS) {
  const url = `ws://127.0.0.1:${server.port}/v1/terminals/${id}/attach?token=${server.token}`;
  const socket = new WebSocket(url);
  await new Promise((resolve) => socket.once('message', resolve));
  const times = [];
  for (let key = 0; key < count; key += 1) {
    const began = nowMs();
    const echoed = new Promise((resolve, reject) => {
      const late = () => reject(new Error(`No echo of key ${key} within ${LONGEST_ECHO_MS} ms.`));
      const timer = setTimeout(late, LONGEST_ECHO_MS);
      const listen = (_data, binary) => {
        if (!binary) return;
        clearTimeout(timer);
        socket.off('message', listen);
        resolve();
      };
      socket.on('message', listen);
    });
    socket.send(Buffer.from('x'));
    await echoed;
    times.push(nowMs() - began);
    await sleep(5);
  }
  socket.terminate();
  return times;
}

async function logRows(found) {
  const command = `seq -f 'line %07.0f of a log that is about sixty bytes a line long' ${LOG_LINES}`;
  const { process } = await found.server.call('POST', '/v1/processes', { command });
  await found.server.call('POST', `/v1/processes/${process.id}/wait`, { for: 'closed' });
  const { page, close } = await opened(found);
  await page.waitForFunction((id) => document.querySelector(`a[href$="${id}"]`), process.id);
  await longestTask(page);
  const last = `line ${LOG_LINES}`;
  const tailMs = await page.evaluate(
    ([id, text]) =>
      globalThis.timeUntil(
        () => (location.hash = `#/p/api/${id}`),
        () =>
          [...document.querySelectorAll('.line')].some((line) => line.textContent.startsWith(text)),
      ),
    [process.id, last],
  );
  const jumps = [];
  for (let jump = 0; jump < JUMPS; jump += 1) {
    jumps.push(
      await page.evaluate(
        (share) => {
          const slider = document.querySelector('.log-place input');
          const before = document.querySelector('.line').textContent;
          return globalThis.timeUntil(
            () => {
              slider.value = String(Math.floor(Number(slider.max) * share));
              slider.dispatchEvent(new Event('change', { bubbles: true }));
            },
            () => document.querySelector('.line')?.textContent !== before,
          );
        },
        ((jump * 37) % 97) / 97,
      ),
    );
    await sleep(30);
  }
  await page.fill('.log-search input', `line ${String(LOG_LINES / 2).padStart(7, '0')} of`);
  const searchMs = await page.evaluate(() =>
    globalThis.timeUntil(
      () =>
        document
          .querySelector('.log-search input')
          .dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true })),
      () => document.querySelector('.line.hit') !== null,
    ),
  );
  const longest = await longestTask(page);
  await close();
  await kill(found, process.id);
  return [
    row({ what: 'log of 60 MB: its end is drawn', value: tailMs, unit: 'ms', under: 150 }),
    row({
      what: 'jump to any place, p50',
      value: median(jumps),
      unit: 'ms',
      under: 30,
      note: `p95 ${percentile(jumps, 0.95).toFixed(0)} ms`,
    }),
    row({
      what: 'search all of it, until the hit is drawn',
      value: searchMs,
      unit: 'ms',
      under: 1500,
    }),
    row({ what: 'longest task of the page meanwhile', value: longest, unit: 'ms', under: 100 }),
  ];
}

async function bombRows(found) {
  const { page, origin, close, typed } = await opened(found);
  let worst = { name: 'none', ms: 0 };
  for (const [name, [first, repeated, times, last]] of Object.entries(BOMBS)) {
    const middle = repeated.includes('{n}')
      ? `Array.from({length:${times}},(_,n)=>${JSON.stringify(repeated)}.replace('{n}',String(n))).join('')`
      : `${JSON.stringify(repeated)}.repeat(${times})`;
    const program = `process.stdin.once('data',()=>{process.stdout.write(${JSON.stringify(first)}+${middle}+${JSON.stringify(last)});setInterval(()=>0,1e6)})`;
    const body = { argv: [process.execPath, '-e', program] };
    const { id } = (await found.server.call('POST', '/v1/terminals', body)).process;
    await page.goto(`${origin}/#/p/api/${id}`);
    await page.waitForSelector('.xterm-rows');
    await longestTask(page);
    await found.server.call('POST', `/v1/terminals/${id}/input`, { text: '\n' });
    const quiet = [{ kind: 'silence', forMs: 300 }];
    await found.server.call('POST', `/v1/processes/${id}/wait`, { for: quiet, timeoutMs: 10_000 });
    await sleep(300);
    const ms = await longestTask(page);
    if (ms > 0) found.progress(`${name}: ${ms} ms`);
    if (ms > worst.ms) worst = { name, ms };
    await kill(found, id);
  }
  await close();
  return [
    row({
      what: `longest task of ${Object.keys(BOMBS).length} escape bombs`,
      value: worst.ms,
      unit: 'ms',
      under: 50,
      note: worst.name,
    }),
    row({ what: 'replies that the page typed', value: typed.length, unit: 'count', atMost: 0 }),
  ];
}

async function wallRows(found) {
  const script =
    'i=0; while :; do i=$((i+1)); printf "\\033[3%dm%d busy with something\\033[0m\\n" $((i%7)) $i; sleep 0.05; done';
  const echo = await terminal(found, 'stty -icanon; exec cat >/dev/null', 'echo');
  const ids = [];
  for (let tile = 0; tile < TILES; tile += 1)
    ids.push(await terminal(found, script, `busy ${tile}`));
  await sleep(2000);
  const { server } = found;
  const share = async (work) => {
    const [cpu, began] = [cpuMs(server.pid), nowMs()];
    const result = await work();
    return { result, share: (cpuMs(server.pid) - cpu) / (nowMs() - began) };
  };
  const alone = await share(() => rawEchoes(found, echo, 400));
  const { page, origin, close } = await opened(found);
  await page.goto(`${origin}/#/wall`);
  await page.waitForFunction(
    (count) => document.querySelectorAll('.tile canvas').length >= count,
    TILES,
  );
  await sleep(5000);
  const heap = await heapBytes(page);
  const watched = await share(async () => {
    const began = nowMs();
    const echoes = await rawEchoes(found, echo, 400);
    await sleep(Math.max(0, WALL_MS - (nowMs() - began)));
    return echoes;
  });
  const growth = (await heapBytes(page)) - heap;
  await close();
  for (const id of [...ids, echo]) await kill(found, id);
  const percent = (value) => `${(value * 100).toFixed(1)} %`;
  return [
    row({
      what: `wall of ${TILES} for ${WALL_MS / 1000} s: growth of the page's heap`,
      value: growth,
      unit: 'bytes',
      under: 20 * MiB,
    }),
    row({
      what: 'cores of the server for it',
      value: watched.share - alone.share,
      unit: 'times',
      under: 0.15,
      note: `${percent(watched.share)} with the wall, ${percent(alone.share)} without`,
    }),
    row({
      what: 'echo of another terminal, of that without the wall',
      value: median(watched.result) / median(alone.result),
      unit: 'times',
      atMost: 1.2,
      note: `p50 ${median(watched.result).toFixed(2)} ms against ${median(alone.result).toFixed(2)} ms`,
    }),
  ];
}

/** Processor time that a process has used. */
function cpuMs(pid) {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

async function listRows(found) {
  const { server, browser } = found;
  await inFlight(ROWS, 16, (number) =>
    server.call('POST', '/v1/processes', { argv: ['true'], name: `process ${number}` }),
  );
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  const link = linkTo(server.home);
  const usableMs = await timed(async () => {
    await page.goto(link);
    await page.waitForFunction(
      (text) => document.querySelector('[role=status].muted')?.textContent.includes(text),
      '10,0',
    );
    await page.waitForSelector('.list-space .row');
  });
  const paintMs = await page.evaluate(
    () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN,
  );
  const frames = await page.evaluate(
    () =>
      new Promise((resolve) => {
        const view = document.querySelector('.list-view');
        const times = [];
        let last = performance.now();
        const step = (now) => {
          times.push(now - last);
          last = now;
          view.scrollTop += 997;
          if (times.length < 240) requestAnimationFrame(step);
          else resolve(times.slice(2));
        };
        requestAnimationFrame(step);
      }),
  );
  const nodes = await page.evaluate(() => document.querySelectorAll('*').length);
  await context.close();
  return [
    row({ what: 'first paint', value: paintMs, unit: 'ms', under: 500 }),
    row({
      what: `list of ${ROWS} usable`,
      value: usableMs,
      unit: 'ms',
      under: 1000,
      note: `${nodes} elements in the document`,
    }),
    row({
      what: 'scrolling it, p99 of a frame',
      value: percentile(frames, 0.99),
      unit: 'ms',
      atMost: 100,
      note: `p50 ${median(frames).toFixed(1)} ms`,
    }),
  ];
}
