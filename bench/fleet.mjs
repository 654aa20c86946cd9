// A fleet on loopback: the same work through a gateway and at the host's own server, in turns; many hosts; a host that dies.

import { readFileSync } from 'node:fs';
import { setTimeout as rest } from 'node:timers/promises';
import { failures } from './fleet-failures.mjs';
import { openFleet } from './support/fleet.mjs';
import { MiB, row } from './support/rows.mjs';
import { median, nowMs } from './support/statistics.mjs';
import { crowd, inTurns, ofOther } from './support/turns.mjs';

const TURNS = 300;
const CROWD = 200;
const BIG_BYTES = 200_000_000;
const BIG_TURNS = 3;
const HOSTS = 1000;
const ROWS = 10;
const WATCHED_MS = 10_000;
const DEATHS = Number(process.env.FLEET_DEATHS ?? 50);
const TICKS = 100;
/** Some of the parts: work, deaths, many, and those of fleet-failures.mjs. */
const ALL = ['work', 'deaths', 'many', ...Object.keys(failures)];
const PARTS = process.env.FLEET_PARTS?.split(',') ?? ALL;

export async function run(context) {
  const rows = PARTS.some((part) => !(part in failures)) ? await runTogether(context) : [];
  if (!rows) return [];
  for (const part of PARTS) if (part in failures) rows.push(...(await failures[part](context)));
  return rows;
}

/** Undefined where there is no nats-server. */
async function runTogether(context) {
  const fleet = await openFleet();
  if (!fleet) {
    context.progress('left out: there is no nats-server');
    return undefined;
  }
  try {
    const host = await fleet.host('h1');
    const near = await fleet.gateway('g1');
    const across = await fleet.gateway('g2', 1);
    for (const gateway of [near, across]) await seen(gateway, 'h1', 'here');
    const parts = {
      work: () => work(context, { direct: host, near, across }),
      deaths: () => deaths(context, fleet, near),
      many: () => many(context, fleet),
    };
    const rows = [];
    for (const part of PARTS) if (part in parts) rows.push(...(await parts[part]()));
    return rows;
  } finally {
    await fleet.close();
  }
}

async function work(context, programs) {
  const each = (act) =>
    Object.fromEntries(Object.entries(programs).map(([name, { caller }]) => [name, act(caller)]));
  const spec = { command: 'true', waitMs: 60_000 };
  const start = (caller) => () => caller.call('POST', '/v1/processes', spec);
  context.progress('start and wait, in turns');
  const one = await inTurns(each(start), { turns: TURNS, warmUp: 300 });
  context.progress(`${CROWD} at once`);
  const burst = await inTurns(
    each((caller) => crowd(CROWD, start(caller))),
    { turns: 7, warmUp: 2 },
  );
  context.progress('200 MB');
  const { process } = await programs.near.caller.call('POST', '/v1/processes', {
    command: `yes 0123456789abcdef | head -c ${BIG_BYTES}`,
    waitMs: 60_000,
  });
  const bytes = (caller) => async () => {
    const path = `/v1/processes/${process.id}/bytes`;
    const count = await caller.call('GET', path, undefined, { count: true });
    if (count !== BIG_BYTES) throw new Error(`${count} bytes came`);
  };
  const follow = (caller) => async () =>
    void (await caller.call('GET', `/v1/processes/${process.id}/follow`, undefined, {
      count: true,
    }));
  const whole = await inTurns(each(bytes), { turns: BIG_TURNS, warmUp: 1 });
  const followed = await inTurns(each(follow), { turns: BIG_TURNS, warmUp: 1 });
  return [
    ratio('start + wait of `true`, gateway on the same node: of the host itself', one, 'near', 1.5),
    ratio('the same across nodes', one, 'across', 1.6),
    ratio(`${CROWD} at once: of the host itself`, burst, 'near', 1.25),
    speed('200 MB by /bytes: speed of the host itself', whole, 'near', 0.65),
    speed('the same across nodes', whole, 'across', 0.5),
    speed('200 MB by /follow: speed of the host itself', followed, 'near', 0.65),
    speed('the same across nodes', followed, 'across', 0.5),
  ];
}

function ratio(what, samples, name, atMost) {
  return row({ what, ...ofOther(samples, name, 'direct'), atMost });
}

function speed(what, samples, name, atLeast) {
  const { value, ...other } = ofOther(samples, name, 'direct');
  return row({ what, ...other, value: 1 / value, atLeast });
}

/** Server and keeper of a host are killed; its server is stopped. */
async function deaths(context, fleet, gateway) {
  context.progress(`${DEATHS} hosts killed, ${DEATHS} stopped`);
  const [killed, stopped] = [[], []];
  for (let round = 0; round < DEATHS; round += 1) {
    const host = await fleet.host('h2', 2);
    await seen(gateway, 'h2', 'here');
    await rest(Math.random() * 1000);
    let began = nowMs();
    host.child.kill('SIGSTOP');
    await seen(gateway, 'h2', 'silent', 'cut');
    stopped.push(nowMs() - began);
    host.child.kill('SIGCONT');
    await seen(gateway, 'h2', 'here');
    await rest(Math.random() * 1000);
    began = nowMs();
    host.child.kill('SIGKILL');
    process.kill(host.keeperPid, 'SIGKILL');
    await seen(gateway, 'h2', 'silent', 'cut');
    killed.push(nowMs() - began);
  }
  return [
    row({
      what: 'host killed: known, the slowest',
      value: Math.max(...killed),
      unit: 'ms',
      atMost: 1000,
      note: `median ${median(killed).toFixed(0)} ms of ${DEATHS}`,
    }),
    row({
      what: 'host stopped: known, the slowest',
      value: Math.max(...stopped),
      unit: 'ms',
      atMost: 5000,
      note: `median ${median(stopped).toFixed(0)} ms of ${DEATHS}`,
    }),
  ];
}

async function many(context, fleet) {
  context.progress(`${HOSTS} simulated hosts`);
  const simulated = await fleet.simulate(HOSTS, ROWS);
  try {
    const gateway = await fleet.gateway('g3', 2);
    const began = nowMs();
    while ((await hosts(gateway)).filter(({ name }) => name.startsWith('sim-')).length < HOSTS)
      await rest(20);
    const knownMs = nowMs() - began;
    const watched = [gateway.pid, ...fleet.urls.map((_url, node) => fleet.node(node).pid)];
    const before = watched.map(cpuMs);
    await rest(WATCHED_MS);
    const [share, ...nodes] = watched.map(
      (pid, index) => (cpuMs(pid) - before[index]) / WATCHED_MS,
    );
    const list = () => gateway.caller.call('GET', '/v1/processes?limit=100');
    const times = await inTurns({ list }, { turns: 5, warmUp: 1 });
    const whole = await list();
    const bytes = residentBytes(gateway.pid);
    simulated.freeze(7);
    const late = nowMs();
    const { incomplete = [] } = await list();
    const lateMs = nowMs() - late;
    if (whole.processes.length !== 100) throw new Error('the page is not full');
    if (!incomplete.includes('sim-7')) throw new Error('the frozen host is not named');
    return [
      row({
        what: `${HOSTS} hosts: all known after the gateway serves`,
        value: knownMs,
        unit: 'ms',
        atMost: 3000,
      }),
      row({
        what: `${HOSTS} beats a second: share of a core`,
        value: share,
        unit: 'times',
        atMost: 0.1,
      }),
      row({
        what: 'the same: the busiest node of NATS',
        value: Math.max(...nodes),
        unit: 'times',
        atMost: 0.15,
      }),
      row({
        what: 'resident memory of the gateway after lists',
        value: bytes,
        unit: 'bytes',
        atMost: 120 * MiB,
      }),
      row({
        what: `first page of 100 of ${HOSTS * ROWS}`,
        value: median(times.list),
        unit: 'ms',
        atMost: 1500,
        note: `incomplete: ${whole.incomplete?.length ?? 0} (the killed host)`,
      }),
      row({
        what: 'the same with one host frozen, which it names',
        value: lateMs,
        unit: 'ms',
        atMost: 2200,
      }),
    ];
  } finally {
    await simulated.close();
  }
}

async function hosts({ caller }) {
  return (await caller.call('GET', '/v1/hosts')).hosts;
}

async function seen(gateway, name, ...states) {
  for (;;) {
    const state = (await hosts(gateway)).find((host) => host.name === name)?.state;
    if (states.includes(state)) return;
    await rest(2);
  }
}

function cpuMs(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS;
}

function residentBytes(pid) {
  const [, kib] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(kib) * 1024;
}
