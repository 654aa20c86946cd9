// A fleet of the bench's own: three nodes of NATS on loopback, hosts and gateways as programs, and hosts that are only
// simulated.

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '@nats-io/transport-node';
import { ENGINE_FLAGS } from '../../dist/base/engine-flags.js';
import { decodeFrame, encodeFrame } from '../../dist/keeper/frames.js';
import { MAIN } from './server.mjs';

const NODES = 3;
/** Above the largest output of a figure. */
const LIMITS = JSON.stringify({ journalBytes: 512 * 1024 * 1024 });
const places = `${process.env.PATH ?? ''}:/usr/sbin`.split(':');
const program =
  process.env.HOLDFAST_NATS ??
  places.map((folder) => join(folder, 'nats-server')).find((path) => existsSync(path));

/** Undefined where there is no nats-server. */
export async function openFleet({ nodes = NODES, jetStream = false } = {}) {
  if (program === undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-fleet-'));
  const children = new Set();
  const ports = await freePorts(2 * nodes);
  const routes = ports.slice(nodes).map((port) => `nats-route://127.0.0.1:${port}`);
  const urls = [];
  const running = [];
  const log = [];
  const startNode = async (node) => {
    const child = spawn(program, ['-c', join(folder, `n${node}.conf`)], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    children.add(child);
    running[node] = child;
    await said(child.stderr, 'Server is ready');
    child.stderr.on('data', (chunk) => log.push(chunk.toString()));
  };
  for (let node = 0; node < nodes; node += 1) {
    const config = join(folder, `n${node}.conf`);
    const cluster = `cluster { name: bench, listen: 127.0.0.1:${ports[nodes + node]}, routes: [${routes.join(', ')}] }`;
    const more = [
      ...(nodes > 1 ? [cluster] : []),
      ...(jetStream ? [`jetstream { store_dir: "${join(folder, `js${node}`)}" }`] : []),
    ].join('\n');
    writeFileSync(
      config,
      `server_name: n${node}\nlisten: 127.0.0.1:${ports[node]}\nmax_pending: 64MB\n${more}\n`,
    );
    urls.push(`nats://127.0.0.1:${ports[node]}`);
  }
  await Promise.all(urls.map((_url, node) => startNode(node)));
  const programAt = async (args, home) => {
    // One for all gateways: a client may turn from one to another.
    const token = join(args[0] === 'gateway' ? folder : home, 'bench-token');
    const env = { ...process.env, HOLDFAST_HOME: home, HOLDFAST_LIMITS: LIMITS };
    const words = [...ENGINE_FLAGS, MAIN, ...args, '--json', '--token-file', token];
    const child = spawn(process.execPath, words, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    children.add(child);
    const ready = JSON.parse(await said(child.stdout, '\n'));
    const secret = readFileSync(token, 'utf8').trim();
    return { ...ready, child, token: secret, caller: new Caller(ready.url, secret) };
  };
  return {
    urls,
    /** What the nodes of NATS have logged. */
    log: () => log.join(''),
    node: (index) => running[index],
    startNode,
    host: (name, node = 0, url = urls[node]) =>
      programAt(['join', url, '--name', name], join(folder, name)),
    gateway: (name, node = 0, more = [], url = urls[node]) =>
      programAt(['gateway', url, '--name', name, ...more], join(folder, name)),
    simulate: (count, rowsEach) => simulateHosts(urls, count, rowsEach),
    async close() {
      for (const child of children) child.kill('SIGCONT');
      for (const name of ['h1', 'h2'])
        if (existsSync(join(folder, name))) {
          const args = [MAIN, 'shutdown', '--home', join(folder, name)];
          await once(spawn(process.execPath, args, { stdio: 'ignore' }), 'close');
        }
      for (const child of children) {
        if (child.exitCode !== null || child.signalCode !== null) continue;
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

class Caller {
  constructor(url, token) {
    this.url = url;
    this.agent = new Agent({ keepAlive: true, maxSockets: 256 });
    this.headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  }

  /** The answer as JSON, or the number or the checksum of its bytes. */
  call(method, path, body, { count = false, hash = false } = {}) {
    return new Promise((resolve, reject) => {
      const { agent, headers } = this;
      const asked = request(`${this.url}${path}`, { method, agent, headers }, (response) => {
        let [bytes, parts] = [0, []];
        const sum = createHash('sha256');
        response.on('data', (part) => {
          bytes += part.length;
          if (hash) sum.update(part);
          else if (!count) parts.push(part);
        });
        response.once('end', () => {
          if (count) return resolve(bytes);
          if (hash && response.statusCode === 200) return resolve(sum.digest('hex'));
          if (hash) return reject(new Error(`the answer is ${response.statusCode}`));
          const answer = JSON.parse(Buffer.concat(parts).toString());
          return answer.error ? reject(new Error(JSON.stringify(answer.error))) : resolve(answer);
        });
        response.once('error', reject);
      });
      asked.once('error', reject);
      asked.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }
}

/** Their beats, and lists of the same few processes. 25 hosts share a connection. */
async function simulateHosts(urls, count, rowsEach) {
  const connections = [];
  for (let first = 0; first < count; first += 25)
    connections.push(await connect({ servers: [urls[connections.length % urls.length]] }));
  const frozen = new Set();
  const names = Array.from({ length: count }, (_, index) => `sim-${index}`);
  const timers = names.map((name, index) => {
    const connection = connections[Math.floor(index / 25)];
    const list = { result: listOf(name, rowsEach) };
    connection.subscribe(`hf.h.${name}.op`, {
      callback: (_error, { data, reply }) => {
        const { op } = decodeFrame(Buffer.from(data));
        if (op === 'list' && !frozen.has(name))
          connection.publish(reply, Buffer.concat(encodeFrame(list)));
      },
    });
    const beat = () => connection.publish(`hf.up.${name}.beat`, JSON.stringify(beatOf(index)));
    beat();
    return setInterval(beat, 1000);
  });
  return {
    freeze: (index) => frozen.add(`sim-${index}`),
    close: async () => {
      for (const timer of timers) clearInterval(timer);
      for (const connection of connections) await connection.close();
    },
  };
}

function beatOf(index) {
  const tag = index
    .toString(32)
    .padStart(7, '0')
    .replace(/[louv]/g, 'x');
  return {
    v: 1,
    tag,
    boot: `boot-${index}`,
    version: '0.1.0',
    nowMs: performance.now(),
    live: 10,
    liveMost: 4000,
    load: 0.1,
    cpus: 8,
    keeperPid: 1,
    drain: false,
    labels: {},
  };
}

function listOf(name, rows) {
  const bytes = { total: 100, retained: 100, dropped: 0, lost: 0 };
  const processes = Array.from({ length: rows }, (_, index) => ({
    id: `${name}-${index}`,
    owner: 'o',
    command: 'sleep 600',
    argv: ['sleep', '600'],
    cwd: '/home/someone',
    pid: 1000 + index,
    streams: 'merged',
    stdin: 'none',
    state: 'running',
    settled: false,
    startedAtMs: 1.7e12 + index,
    durationMs: 1000,
    seq: 1,
    bytes,
  }));
  return { processes, total: rows };
}

async function freePorts(count) {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

async function said(stream, wanted) {
  let text = '';
  for (;;) {
    const [chunk] = await once(stream, 'data');
    text += chunk.toString();
    if (text.includes(wanted)) return text;
  }
}
