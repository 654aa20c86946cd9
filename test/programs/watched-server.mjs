// A server in a program of its own that watches itself: what nobody caught, and how long its event loop stood still while
// its thread was working. Argument: the home. Says where it is on stdout; each line on stdin is answered with what it
// has seen; the end of stdin ends it, its keeper and everything the keeper holds.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { threadId, threadTimeNs } from '../../dist/base/workers/thread-time.js';
import { startServer } from '../../dist/server/server.js';

const home = process.argv[2];
const TICK_MS = 10;
const seen = { uncaught: [], unhandled: [], reports: [], longestBusyMs: 0, longestDelayMs: 0 };
process.on('uncaughtException', (error) => seen.uncaught.push(String(error.stack)));
process.on('unhandledRejection', (error) => seen.unhandled.push(String(error?.stack ?? error)));

const server = await startServer({
  home,
  tokenFile: join(home, 'token'),
  defaultDirectory: home,
  env: { PATH: process.env.PATH, HOME: home },
  keeperArgs: [
    '--idle-ms',
    '60000',
    '--limits',
    JSON.stringify({ liveCount: 100, closedCount: 500 }),
  ],
  report: (message) => seen.reports.push(message),
});

const delay = monitorEventLoopDelay({ resolution: TICK_MS });
delay.enable();
const thread = threadId();
let worked = threadTimeNs(thread);
setInterval(() => {
  // Between two ticks the loop was held up by at most what the thread worked.
  const now = threadTimeNs(thread);
  seen.longestBusyMs = Math.max(seen.longestBusyMs, Number(now - worked) / 1e6);
  worked = now;
}, TICK_MS);

const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
const { url, routes, keeperPid } = server;
say({ url, routes, keeperPid, token: readFileSync(server.tokenFile, 'utf8').trim() });
for await (const _ of createInterface({ input: process.stdin })) {
  say({ ...seen, longestDelayMs: delay.max / 1e6, rssBytes: process.memoryUsage.rss() });
}
const link = await server.host.link();
await link.stop();
await server.close();
process.exit();
