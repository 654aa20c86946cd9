// A keeper of the bench's own: a temporary home, and nothing left of it afterwards.

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectKeeper } from '../../dist/index.js';
import { endAtExit } from './leftovers.mjs';

export const OWNER = 'bench';

const PROBE = new URL('./probe.mjs', import.meta.url).pathname;
const LONGEST_STOP_MS = 60_000;

/**
 * `profile`: a folder for the keeper's CPU profile, written when it leaves. `stalls`: whether they are measured. `home`:
 * what a killed keeper left. `probe: false`: nothing is loaded into it.
 */
export async function openKeeper(options = {}) {
  const { profile, limits, stalls = false, home = newHome(), probe: probed = true } = options;
  const { groups = true } = options;
  const socket = join(home, 'probe.sock');
  rmSync(socket, { force: true });
  const probe = {
    BENCH_PROBE: socket,
    ...(stalls && { BENCH_STALLS: `${socket}.stalls` }),
    ...(profile !== undefined && { BENCH_PROFILE: profile }),
  };
  const env = {
    ...process.env,
    ...(probed && { ...probe, NODE_OPTIONS: `--import=${PROBE}` }),
  };
  const keeperArgs = [
    '--idle-ms',
    '60000',
    ...(limits ? ['--limits', JSON.stringify(limits)] : []),
    ...(groups ? [] : ['--no-cgroups']),
  ];
  const ended = endAtExit(home);
  const link = await connectKeeper({ home, env, keeperArgs });
  const { pid } = link.keeper;
  const journals = join(home, 'journals');
  return {
    home,
    link,
    pid,
    /** The keeper's memory and CPU time after a forced collection. */
    memory: () => told(socket),
    /** The longest time for which its main thread was held up since the last question. */
    stalls: () => told(`${socket}.stalls`),
    /** As the keeper itself tells it, without forcing anything. */
    rssBytes: async () => (await link.health(OWNER, {})).rssBytes,
    journals: () => folderUse(journals),
    async stop() {
      if (profile !== undefined) await told(`${socket}.profile`);
      await link.stop();
      for (let left = LONGEST_STOP_MS; existsSync(`/proc/${pid}`) && left > 0; left -= 10)
        await sleep(10);
      ended();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

function newHome() {
  return mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
}

/** Processor time of all threads of a process so far. */
export function cpuMs(pid) {
  const threads = readdirSync(`/proc/${pid}/task`);
  const nanoseconds = threads.map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ', 1)[0]),
  );
  return nanoseconds.reduce((sum, each) => sum + each, 0) / 1e6;
}

/** A process that has ended and left one in a session of its own, with its streams elsewhere. */
export async function startDaemon(link) {
  const command = 'setsid sleep 3600 >/dev/null 2>&1 & echo $!';
  const { process } = await link.start(OWNER, { command });
  await waitFor(link, process.id, 'closed');
  const { text } = await link.text(OWNER, { id: process.id });
  return { id: process.id, pid: Number(text) };
}

/** Starts it, waits for one condition, and makes sure that it went well. */
export async function runThrough(link, spec, kind = 'exit') {
  const { process } = await link.start(OWNER, spec);
  return finished(await waitFor(link, process.id, kind));
}

export async function waitFor(link, id, kind) {
  const { met } = await link.wait(OWNER, { waits: [{ id, for: [{ kind }] }] });
  return met[0].process;
}

export function finished(process) {
  const { outcome } = process;
  if (outcome?.kind !== 'exit' || outcome.code !== 0) {
    throw new Error(`${process.command} ended with ${JSON.stringify(outcome)}`);
  }
  return process;
}

/** What a probe says when it is called. */
export function told(path) {
  return new Promise((resolve, reject) => {
    let text = '';
    connect(path)
      .on('data', (chunk) => (text += chunk))
      .on('end', () => resolve(JSON.parse(text)))
      .on('error', reject);
  });
}

/** A file that waits for the next start is empty, or has one opening record; that of a process has several records. */
const SPARE_BYTES = 120;

function folderUse(folder) {
  let bytes = 0;
  let files = 0;
  for (const name of readdirSync(folder)) {
    // Undefined: removed meanwhile by retention.
    const size = statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0;
    if (size > SPARE_BYTES) files += 1;
    bytes += size;
  }
  return { bytes, files };
}
