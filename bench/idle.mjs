// What a server and its keeper cost while nobody asks them anything: memory, and how often they wake up.

import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { coderClient } from './support/clients.mjs';
import { openServer } from './support/server.mjs';
import { row } from './support/rows.mjs';

const STARTS = 20;
/** Parts that are loaded soon after the start are there by then, and what a start leaves to do is done. */
const SETTLE_MS = 20_000;
const WATCH_MS = 20_000;
const MB = 1e6;

export async function run({ progress }) {
  const server = await openServer({ probe: false });
  try {
    const client = coderClient(server);
    for (let turn = 0; turn < STARTS; turn += 1) await client.runTrue();
    client.close();
    progress(`${SETTLE_MS / 1000} s of rest, then ${WATCH_MS / 1000} s watched`);
    await sleep(SETTLE_MS);
    const pids = { server: server.pid, keeper: server.keeperPid };
    const before = mapped(pids, wakeUps);
    await sleep(WATCH_MS);
    const after = mapped(pids, wakeUps);
    const { server: one, keeper: other } = mapped(pids, memoryOf);
    // Both run the same Node: its pages are in memory once.
    const shared = Math.max(one.shared, other.shared);
    return [
      row({
        what: 'server and keeper, idle: memory of both together',
        value: (one.own + other.own + shared) / MB,
        unit: 'megabytes',
        under: 100,
        note: `server ${inMB(one.own)} of its own, keeper ${inMB(other.own)}, shared ${inMB(shared)}`,
      }),
      ...Object.keys(pids).map((name) =>
        row({
          what: `${name}, idle: wake-ups per second`,
          value: (after[name] - before[name]) / (WATCH_MS / 1000),
          unit: 'rarely',
          under: 0.2,
        }),
      ),
    ];
  } finally {
    await server.stop();
  }
}

function inMB(bytes) {
  return `${(bytes / MB).toFixed(1)} MB`;
}

function mapped(pids, measure) {
  return Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, measure(pid)]));
}

/** How often any of its threads has gone to sleep: once for each time that it was woken. */
function wakeUps(pid) {
  return readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => {
    const status = readFileSync(`/proc/${pid}/task/${thread}/status`, 'latin1');
    return sum + Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)[1]);
  }, 0);
}

/** What is its own, and what it shares with any other process. */
function memoryOf(pid) {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1');
  const bytes = (name) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)[1]) * 1024;
  return {
    own: bytes('Private_Clean') + bytes('Private_Dirty'),
    shared: bytes('Shared_Clean') + bytes('Shared_Dirty'),
  };
}
