// Terminals: a waited command over the socket and by the command line, beside tmux; what idle ones cost; how fast they
// come; what a large output costs.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OWNER } from './support/keeper.mjs';
import { openServer } from './support/server.mjs';
import { MiB, row } from './support/rows.mjs';
import { median, nowMs, percentile, timed } from './support/statistics.mjs';

const MAIN = new URL('../dist/cli/main.js', import.meta.url).pathname;
const RUNS = 300;
const TMUX_RUNS = 100;
const COMMAND_LINES = 20;
const SESSIONS = 100;
const PRINTED_BYTES = 50_000_000;
const PRINT = `yes 'a line of seventy characters or so, as programs print them, 0123456789' | head -c ${PRINTED_BYTES}`;
/** Of the kernel's accounting (sysconf _SC_CLK_TCK is 100 on every Linux). */
const TICKS_PER_SECOND = 100;

export async function run(context) {
  const keeper = await context.openKeeper();
  const { link } = keeper;
  try {
    context.progress('waited runs over the socket');
    const bash = await waitedRuns(link, '/bin/bash');
    const dash = await waitedRuns(link, '/bin/dash');
    context.progress('tmux');
    const tmux = tmuxRuns();
    context.progress('command lines');
    const lines = commandLines();
    context.progress(`${SESSIONS} sessions`);
    const crowd = await openMany(keeper);
    context.progress('50 MB');
    const printed = await printMuch(keeper);
    context.progress('50 MB, somebody looking');
    const watched = await printWatched(context);
    const spread = (samples) =>
      `p95 ${percentile(samples, 0.95).toFixed(2)}, min ${Math.min(...samples).toFixed(2)} ms, ${samples.length} runs`;
    return [
      row({
        what: 'waited "true" in bash over the socket, p50',
        value: median(bash),
        unit: 'ms',
        under: 5,
        note: spread(bash),
      }),
      row({ what: 'the same in dash', value: median(dash), unit: 'ms', note: spread(dash) }),
      ...(tmux
        ? [
            row({
              what: 'tmux: the same by send-keys and wait-for, p50',
              value: median(tmux),
              unit: 'ms',
              note: spread(tmux),
            }),
            row({
              what: 'ours in bash, of tmux',
              value: median(bash) / median(tmux),
              unit: 'times',
              under: 1,
            }),
          ]
        : []),
      row({
        what: 'waited "true" by command line, of "node -e 0"',
        value: median(lines.ours) / median(lines.node),
        unit: 'times',
        under: 2.5,
        note: `${median(lines.ours).toFixed(0)} and ${median(lines.node).toFixed(0)} ms, p50 of ${COMMAND_LINES}`,
      }),
      row({
        what: `${SESSIONS} sessions, each at its first prompt`,
        value: crowd.ms,
        unit: 'ms',
        under: 3000,
      }),
      row({
        what: 'keeper RSS for each idle session',
        value: crowd.rssEach,
        unit: 'bytes',
        under: MiB,
        note: `heap ${(crowd.heapEach / 1024).toFixed(1)} KiB`,
      }),
      row({
        what: '50 MB printed, for each second of the keeper’s processor time',
        value: printed.perCpuSecond,
        unit: 'rate',
        atLeast: 25e6,
        note: `${printed.seconds.toFixed(1)} s, ${(PRINTED_BYTES / 1e6 / printed.seconds).toFixed(0)} MB/s`,
      }),
      row({
        what: '50 MB printed while its screen is kept current, for each second of both processes’ time',
        value: watched.perCpuSecond,
        unit: 'rate',
        atLeast: 25e6,
        note: `keeper ${watched.keeper.toFixed(2)} s, server with its threads ${watched.server.toFixed(2)} s; ${watched.seconds.toFixed(1)} s; right at the end: ${watched.right}`,
      }),
      row({
        what: 'its snapshot afterwards',
        value: watched.snapshotMs,
        unit: 'ms',
        under: 300,
      }),
    ];
  } finally {
    await keeper.stop();
  }
}

async function open(link, shell) {
  const spec = { argv: [shell], streams: 'pty', marks: true, env: { PS1: '$ ', HOME: '/' } };
  return (await link.start(OWNER, spec)).process.id;
}

async function runOnce(link, id, command) {
  const result = await link.run(OWNER, { id, command });
  if (!result.completed || result.exitCode !== 0) throw new Error(JSON.stringify(result));
  return result;
}

async function waitedRuns(link, shell) {
  const id = await open(link, shell);
  for (let each = 0; each < 20; each += 1) await runOnce(link, id, 'true');
  const samples = [];
  for (let each = 0; each < RUNS; each += 1)
    samples.push(await timed(() => runOnce(link, id, 'true')));
  await link.remove(OWNER, { id, force: true });
  return samples;
}

/** Undefined where there is no tmux. */
function tmuxRuns() {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-tmux-'));
  const tmux = (...args) =>
    spawnSync('tmux', ['-S', join(folder, 'socket'), '-f', '/dev/null', ...args], {
      encoding: 'utf8',
      env: { ...process.env, PS1: '$ ', HOME: '/' },
    });
  try {
    if (tmux('new-session', '-d', '-s', 'bench', '/bin/bash --norc').status !== 0) return undefined;
    const samples = [];
    for (let each = 0; each < TMUX_RUNS; each += 1) {
      const began = nowMs();
      tmux('send-keys', '-t', 'bench', `true; tmux wait-for -S done${each}`, 'Enter');
      tmux('wait-for', `done${each}`);
      samples.push(nowMs() - began);
    }
    return samples;
  } finally {
    tmux('kill-server');
    rmSync(folder, { recursive: true, force: true });
  }
}

function commandLines() {
  const home = mkdtempSync(join(tmpdir(), 'holdfast-tty-'));
  const env = { ...process.env, HOLDFAST_HOME: home, XDG_STATE_HOME: home };
  const ours = (...args) => spawnSync(process.execPath, [MAIN, ...args], { encoding: 'utf8', env });
  try {
    const id = ours('tty', 'create', '--shell', '/bin/bash').stdout.trim();
    const took = (work) => {
      const began = nowMs();
      const { status } = work();
      if (status !== 0) throw new Error(`a command line ended with ${status}`);
      return nowMs() - began;
    };
    const samples = { ours: [], node: [] };
    for (let each = 0; each < COMMAND_LINES; each += 1) {
      samples.node.push(took(() => spawnSync(process.execPath, ['-e', '0'])));
      samples.ours.push(took(() => ours('tty', 'run', id, 'true')));
    }
    return samples;
  } finally {
    ours('shutdown', '--force');
    rmSync(home, { recursive: true, force: true });
  }
}

async function openMany(keeper) {
  const { link } = keeper;
  const before = await keeper.memory();
  let ids = [];
  const ms = await timed(async () => {
    ids = await Promise.all(Array.from({ length: SESSIONS }, () => open(link, '/bin/bash')));
    await Promise.all(ids.map((id) => runOnce(link, id, 'true')));
  });
  const after = await keeper.memory();
  await Promise.all(ids.map((id) => link.remove(OWNER, { id, force: true })));
  const each = (name) => (after[name] - before[name]) / SESSIONS;
  return { ms, rssEach: each('rss'), heapEach: each('heapUsed') + each('external') };
}

async function printMuch(keeper) {
  const { link } = keeper;
  const id = await open(link, '/bin/bash');
  await runOnce(link, id, 'true');
  const before = await keeper.memory();
  const seconds = (await timed(() => runOnce(link, id, PRINT))) / 1000;
  const after = await keeper.memory();
  const spent = ({ cpu }) => (cpu.user + cpu.system) / 1e6;
  const cpuSeconds = spent(after) - spent(before);
  return { seconds, perCpuSecond: PRINTED_BYTES / cpuSeconds };
}

/** Over HTTP, as a client does it: one waits for what will be on the screen at the end, one runs the command. */
async function printWatched(context) {
  const server = await openServer({ profile: context.profile });
  try {
    const { process } = await server.call('POST', '/v1/terminals', {
      argv: ['/bin/bash'],
      env: { PS1: '$ ', HOME: '/' },
      size: { cols: 80, rows: 24 },
    });
    const path = `/v1/terminals/${process.id}`;
    const run = (command) => server.call('POST', `${path}/run`, { command });
    await run('true');
    await server.call('GET', `${path}/snapshot`);
    const before = { keeper: cpuSeconds(server.keeperPid), server: cpuSeconds(server.pid) };
    const began = nowMs();
    const [shown] = await Promise.all([
      server.call('POST', `${path}/wait`, { text: 'the-very-end', timeoutMs: 120_000 }),
      run(`${PRINT}; echo; echo the-very-'end'`),
    ]);
    const seconds = (nowMs() - began) / 1000;
    const spent = (name, pid) => cpuSeconds(pid) - before[name];
    const [keeper, serverSeconds] = [
      spent('keeper', server.keeperPid),
      spent('server', server.pid),
    ];
    const lines = shown.snapshot.text.split('\n');
    const end = lines.indexOf('the-very-end');
    const snapshotMs = await timed(() => server.call('GET', `${path}/snapshot`));
    return {
      seconds,
      keeper,
      server: serverSeconds,
      perCpuSecond: PRINTED_BYTES / (keeper + serverSeconds),
      right:
        shown.matched &&
        lines.slice(0, end - 1).every((line) => line.startsWith('a line of seventy')),
      snapshotMs,
    };
  } finally {
    await server.stop();
  }
}

function cpuSeconds(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  // utime and stime: the 14th and 15th field, of which two are cut off.
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}
