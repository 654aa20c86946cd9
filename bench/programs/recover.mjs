// Opens a host on what an earlier keeper left, as the next keeper does, and says how long its main thread worked in one piece
// at most, and how long the opening took. It leaves without ending anybody.

import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { Host } from '../../dist/host/host.js';
import { loadPosix } from '../../dist/system/posix.js';

const [, , folder] = process.argv;
const schedule = `/proc/self/task/${process.pid}/schedstat`;
const busyMs = () => Number(readFileSync(schedule, 'latin1').split(' ', 1)[0]) / 1e6;
const surroundings = { env: process.env, cwd: homedir(), home: homedir() };

let longestMs = 0;
let last = busyMs();
let over = false;
const look = () => {
  const now = busyMs();
  longestMs = Math.max(longestMs, now - last);
  last = now;
  if (!over) setImmediate(look);
};
setImmediate(look);
const began = performance.now();
const host = await Host.open({ folder, surroundings, adopts: true, children: 'posix' });
look();
over = true;
const readyMs = performance.now() - began;
const { live, ended } = await host.health('*', {});
process.stdout.write(JSON.stringify({ longestMs, readyMs, processes: live + ended }), () =>
  loadPosix().exit(0),
);
