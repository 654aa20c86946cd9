// A fleet on its bad days: nodes and leaders that die or hang, a link that freezes, a gateway that is killed, readers that stop.

import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { request } from 'node:http';
import { connect as dial, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as rest } from 'node:timers/promises';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect as connectNats } from '@nats-io/transport-node';
import { connect } from '../dist/client/connect.js';
import { ArchiveReader } from '../dist/fleet/archive/archive-reader.js';
import { openStore } from '../dist/fleet/archive/archive-store.js';
import { openFleet } from './support/fleet.mjs';
import { MiB, row } from './support/rows.mjs';
import { nowMs, percentile } from './support/statistics.mjs';

const WAITS = 1000;
const KILLS = Number(process.env.FLEET_KILLS ?? 20);
const CUT_MS = Number(process.env.FLEET_CUT_MS ?? 60_000);
const ENDS_PER_SECOND = 50;
const READERS = 20;
const FLOOD_MS = 20_000;
const ROUNDS = 50;
const ARCHIVED_BYTES = 64 * MiB;
const FLIPS = 40;

/** Each with a fleet of its own. */
export const failures = {
  async hang(context) {
    return withFleet({}, async (fleet) => {
      context.progress('a node of NATS hangs');
      await fleet.host('h1', 1);
      const gateway = await fleet.gateway('g1');
      const { process } = await started(gateway, 'sleep 600');
      fleet.node(0).kill('SIGSTOP');
      const began = nowMs();
      while (!(await answers(gateway, process.id))) await rest(20);
      const value = nowMs() - began;
      return [
        row({
          what: 'node of NATS stopped: calls are answered again',
          value,
          unit: 'ms',
          atMost: 6000,
        }),
      ];
    });
  },

  async gateway(context) {
    return withFleet({}, async (fleet) => {
      context.progress(`a gateway is killed with ${WAITS} waits`);
      await fleet.host('h1');
      const [one, other] = [await fleet.gateway('g1'), await fleet.gateway('g2', 1)];
      const client = await connect({ url: [one.url, other.url], token: one.token });
      const process = await client.start('read x; exit 7', { stdin: 'pipe' });
      const waits = Array.from({ length: WAITS }, () => process.waitForExit());
      while ((await one.caller.call('GET', '/v1/health')).parkedWaits < WAITS) await rest(20);
      one.child.kill('SIGKILL');
      const began = nowMs();
      await process.stdin.end('\n');
      const results = await Promise.all(waits);
      const value = nowMs() - began;
      const wrong = results.filter(({ exitCode }) => exitCode !== 7).length;
      await client.close();
      return [
        row({
          what: `gateway killed: ${WAITS} waits answered by the other`,
          value,
          unit: 'ms',
          atMost: 3000,
        }),
        row({ what: 'of them wrong', value: wrong, unit: 'count', atMost: 0 }),
      ];
    });
  },

  async leader(context) {
    return withFleet({ jetStream: true }, async (fleet) => {
      context.progress(`${KILLS} leaders of the ledger killed`);
      const host = await fleet.host('h1');
      const gateway = await fleet.gateway('g1', 1);
      await started(gateway, 'true');
      const feed = follow(gateway);
      const work = startSteadily(host);
      const calls = timeStarts(gateway);
      for (let kill = 0; kill < KILLS; kill += 1) {
        await rest(3000);
        const index = await leader(fleet);
        fleet.node(index).kill('SIGKILL');
        await rest(2000);
        await fleet.startNode(index);
      }
      const times = await calls.stop();
      const names = await work.stop();
      const { lost, twice, disorder, stallMs } = await feed.judge(names);
      return [
        row({
          what: 'leader killed: ends lost, told twice or out of order',
          value: lost + twice + disorder,
          unit: 'count',
          atMost: 0,
          note: `${names.length} ends, ${KILLS} kills`,
        }),
        row({
          what: 'leader killed: longest silence of the ledger',
          value: stallMs,
          unit: 'ms',
          atMost: 12_000,
        }),
        row({
          what: 'start + wait without a key meanwhile, p99',
          value: percentile(times, 0.99),
          unit: 'ms',
          atMost: 3000,
        }),
      ];
    });
  },

  async quorum(context) {
    return withFleet({ jetStream: true }, async (fleet) => {
      context.progress('two of three nodes are dead');
      await fleet.host('h1', 2, fleet.urls.join(','));
      const gateway = await fleet.gateway('g1', 2, [], fleet.urls.join(','));
      await started(gateway, 'true');
      const feed = follow(gateway);
      const { process } = await started(gateway, 'sleep 600');
      for (const index of [0, 1]) fleet.node(index).kill('SIGKILL');
      const began = nowMs();
      while (!(await answers(gateway, process.id))) await rest(20);
      const value = nowMs() - began;
      const names = Array.from({ length: ROUNDS }, (_, index) => `n${index}`);
      let failed = 0;
      for (const name of names) {
        const spec = { command: 'true', name, waitMs: 60_000 };
        await gateway.caller.call('POST', '/v1/processes', spec).catch(() => (failed += 1));
      }
      const key = await gateway.caller
        .call('POST', '/v1/processes', { command: 'true', key: 'k' })
        .then(
          () => 'started',
          (error) => JSON.parse(error.message).code,
        );
      for (const index of [0, 1]) await fleet.startNode(index);
      const { lost, twice, disorder } = await feed.judge(names);
      return [
        row({
          what: 'two of three nodes killed: calls are answered again',
          value,
          unit: 'ms',
          atMost: 6000,
        }),
        row({
          what: 'meanwhile: starts without a key that failed',
          value: failed,
          unit: 'count',
          atMost: 0,
          note: `of ${ROUNDS}`,
        }),
        row({
          what: 'meanwhile: starts with a key that were not refused',
          value: key === 'fabric_degraded' ? 0 : 1,
          unit: 'count',
          atMost: 0,
          note: key,
        }),
        row({
          what: 'two nodes back: ends lost, told twice or out of order',
          value: lost + twice + disorder,
          unit: 'count',
          atMost: 0,
          note: `${names.length} ends`,
        }),
      ];
    });
  },

  async archive(context) {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-archive-'));
    try {
      return await withFleet({ nodes: 1, jetStream: true }, async (fleet) => {
        context.progress('64 MiB in an archive');
        const host = await fleet.host('h1');
        const gateway = await fleet.gateway('g1', 0, ['--archive', `file://${folder}`]);
        const command = `yes 0123456789abcdef | head -c ${ARCHIVED_BYTES}`;
        const { process } = await started(gateway, command);
        const sum = ({ caller }) =>
          caller.call('GET', `/v1/processes/${process.id}/bytes`, undefined, { hash: true });
        const store = await openStore(`file://${folder}`, undefined);
        while ((await store.list(`m/${process.id}/`)).length === 0) await rest(50);
        const wanted = await sum(host);
        host.child.kill('SIGKILL');
        globalThis.process.kill(host.keeperPid, 'SIGKILL');
        while ((await gateway.caller.call('GET', '/v1/hosts')).hosts[0]?.state === 'here')
          await rest(20);
        const began = nowMs();
        const found = await sum(gateway);
        const readMs = nowMs() - began;
        context.progress(`${FLIPS} flipped bits`);
        const shown = await countShown(store, folder, process.id);
        return [
          row({
            what: 'archived 64 MiB read without the host: differs',
            value: found === wanted ? 0 : 1,
            unit: 'count',
            atMost: 0,
            note: `read in ${(readMs / 1000).toFixed(1)} s`,
          }),
          row({
            what: 'flipped bits of the archive that were not refused',
            value: shown,
            unit: 'count',
            atMost: 0,
            note: `of ${FLIPS}`,
          }),
        ];
      });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },

  async partition(context) {
    return withFleet({ nodes: 1, jetStream: true }, async (fleet) => {
      context.progress(`the link of a host is frozen for ${CUT_MS / 1000} s`);
      const link = await freezableLink(Number(new URL(fleet.urls[0]).port));
      const host = await fleet.host('h1', 0, link.url);
      const gateway = await fleet.gateway('g1');
      await started(gateway, 'true');
      const feed = follow(gateway);
      const work = startSteadily(host);
      await rest(1000);
      link.freeze();
      await rest(CUT_MS);
      const names = await work.stop();
      link.thaw();
      const began = nowMs();
      const { lost, twice, disorder } = await feed.judge(names);
      const value = nowMs() - began;
      link.close();
      return [
        row({
          what: 'frozen link: ends lost, told twice or out of order',
          value: lost + twice + disorder,
          unit: 'count',
          atMost: 0,
          note: `${names.length} ends`,
        }),
        row({ what: 'frozen link: all told after it is back', value, unit: 'ms', atMost: 5000 }),
      ];
    });
  },

  async flood(context) {
    return withFleet({}, async (fleet) => {
      context.progress(`${READERS} readers of a flood stop`);
      await fleet.host('h1');
      const gateway = await fleet.gateway('g1');
      const { process } = await started(gateway, 'yes 0123456789abcdef');
      const before = residentBytes(gateway.pid);
      const readers = Array.from({ length: READERS }, () => stopped(gateway, process.id));
      let [most, late] = [0, 0];
      for (const until = nowMs() + FLOOD_MS; nowMs() < until; await rest(250)) {
        most = Math.max(most, residentBytes(gateway.pid) - before);
        const { hosts } = await gateway.caller.call('GET', '/v1/hosts');
        late += hosts.filter(({ state }) => state !== 'here').length;
      }
      for (const reader of readers) reader.destroy();
      await gateway.caller.call('POST', `/v1/processes/${process.id}/signal`, {
        signal: 'SIGKILL',
      });
      const slow = fleet.log().match(/slow consumer/gi)?.length ?? 0;
      return [
        row({
          what: `${READERS} stopped readers of a flood: memory of the gateway`,
          value: most,
          unit: 'bytes',
          atMost: 64 * MiB,
        }),
        row({
          what: 'slow consumers, and looks at which a host was not here',
          value: slow + late,
          unit: 'count',
          atMost: 0,
        }),
      ];
    });
  },
};

/** Flips one bit at a time, spread over all files of the archive. */
async function countShown(store, folder, id) {
  const cache = join(folder, 'cache');
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  let shown = 0;
  for (let flip = 0; flip < FLIPS; flip += 1) {
    const path = files[flip % files.length];
    const { size } = statSync(path);
    const at = Math.floor((size * (flip + 0.5)) / FLIPS);
    const file = openSync(path, 'r+');
    const good = Buffer.alloc(1);
    readSync(file, good, 0, 1, at);
    writeSync(file, Buffer.from([good[0] ^ (1 << (flip & 7))]), 0, 1, at);
    const reader = new ArchiveReader(store, cache);
    await reader
      .use('*', id, async () => undefined)
      .then(
        () => (shown += 1),
        (error) => {
          if (error.code !== 'archive_damaged') throw error;
        },
      );
    await reader.close();
    writeSync(file, good, 0, 1, at);
    closeSync(file);
  }
  return shown;
}

async function withFleet(options, act) {
  const fleet = await openFleet(options);
  try {
    return await act(fleet);
  } finally {
    await fleet.close();
  }
}

/** Once the fleet can do it. */
async function started({ caller }, command) {
  for (;;) {
    try {
      return await caller.call('POST', '/v1/processes', { command });
    } catch (error) {
      if (!/no_host|fabric_degraded|host_unreachable/.test(error.message)) throw error;
      await rest(50);
    }
  }
}

function answers({ caller }, id) {
  return caller.call('GET', `/v1/processes/${id}`).then(
    () => true,
    () => false,
  );
}

/** Starts short processes at the host itself, one after the other. */
function startSteadily({ caller }) {
  const names = [];
  const state = { ended: false };
  const done = (async () => {
    for (let next = nowMs(); !state.ended; next += 1000 / ENDS_PER_SECOND) {
      const name = `n${names.length}`;
      await caller.call('POST', '/v1/processes', { command: 'true', name, waitMs: 60_000 });
      names.push(name);
      await rest(Math.max(0, next - nowMs()));
    }
  })();
  return {
    stop: async () => {
      state.ended = true;
      await done;
      return names;
    },
  };
}

function timeStarts({ caller }) {
  const times = [];
  const state = { ended: false };
  const done = (async () => {
    while (!state.ended) {
      const began = nowMs();
      await caller
        .call('POST', '/v1/processes', { command: 'true', waitMs: 60_000 })
        .catch(() => undefined);
      times.push(nowMs() - began);
    }
  })();
  return {
    stop: async () => {
      state.ended = true;
      await done;
      return times;
    },
  };
}

/** The completions of a gateway, in the order in which they come. */
function follow({ caller }) {
  const told = [];
  const state = { ended: false };
  let [lastMs, stallMs, after] = [nowMs(), 0, 0];
  const done = (async () => {
    while (!state.ended) {
      const path = `/v1/completions?subscriber=bench&waitMs=500&limit=1000&after=${after}`;
      const { completions } = await caller.call('GET', path).catch(() => ({ completions: [] }));
      const named = completions.filter(({ name }) => /^n\d+$/.test(name ?? ''));
      after = completions.at(-1)?.number ?? after;
      if (named.length === 0) continue;
      stallMs = Math.max(stallMs, nowMs() - lastMs);
      lastMs = nowMs();
      told.push(...named.map(({ name }) => name));
    }
  })();
  return {
    /** Waits until all of them have come, or none has for 20 s. */
    judge: async (names) => {
      // While a link was frozen nothing came.
      const begunMs = nowMs();
      while (told.length < names.length && nowMs() - Math.max(lastMs, begunMs) < 20_000)
        await rest(10);
      state.ended = true;
      await done;
      const unique = new Set(told);
      const lost = names.filter((name) => !unique.has(name)).length;
      const disorder = told.filter(
        (name, index) => index > 0 && order(told[index - 1]) > order(name),
      ).length;
      return { lost, twice: told.length - unique.size, disorder, stallMs };
    },
  };
}

const order = (name) => Number(name.slice(1));

async function leader({ urls }) {
  const connection = await connectNats({ servers: urls });
  try {
    const manager = await jetstreamManager(connection, { checkAPI: false });
    for (;;) {
      const found = await manager.streams.info('HF_LEDGER').catch(() => undefined);
      if (found?.cluster?.leader) return Number(found.cluster.leader.slice(1));
      await rest(100);
    }
  } finally {
    await connection.close();
  }
}

/** A response of which nothing is read. */
function stopped({ url, token }, id) {
  const headers = { Authorization: `Bearer ${token}` };
  const asked = request(`${url}/v1/processes/${id}/follow`, { headers }, (response) =>
    response.pause(),
  );
  asked.on('error', () => undefined);
  asked.end();
  return asked;
}

async function freezableLink(port) {
  const sockets = new Set();
  let frozen = false;
  const server = createServer((near) => {
    const far = dial(port, '127.0.0.1');
    for (const [from, to] of [
      [near, far],
      [far, near],
    ]) {
      sockets.add(from);
      from.on('data', (chunk) => to.write(chunk));
      from.on('error', () => to.destroy());
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
      if (frozen) from.pause();
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const each = (act) => {
    for (const socket of sockets) act(socket);
  };
  return {
    url: `nats://127.0.0.1:${server.address().port}`,
    freeze: () => each((socket) => socket.pause(), (frozen = true)),
    thaw: () => each((socket) => socket.resume(), (frozen = false)),
    close: () => {
      each((socket) => socket.destroy());
      server.close();
    },
  };
}

function residentBytes(pid) {
  const [, kib] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(kib) * 1024;
}
