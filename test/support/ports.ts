// Ports for servers that end and come back: outside the range from which the kernel gives ports to everybody who asks for
// any, so that no other program has one meanwhile.

import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the range that Linux gives ports from. */
const FIRST = 20_000;
/** Each worker of the test runner has its own. */
const PER_WORKER = 400;
const WORKERS = 30;

const worker = Number(process.env['VITEST_POOL_ID'] ?? 0) % WORKERS;
/** Another number for each program: there may be two test runs on this machine. */
let taken = process.pid * 7;

export async function portToKeep(): Promise<number> {
  for (;;) {
    const port = FIRST + worker * PER_WORKER + (taken++ % PER_WORKER);
    const server = createServer();
    const isFree = Promise.race([
      once(server, 'listening').then(() => true),
      new Promise<boolean>((resolve) => server.once('error', () => resolve(false))),
    ]);
    server.listen(port, '127.0.0.1');
    if (!(await isFree)) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}
