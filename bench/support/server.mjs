// A server of the bench's own with its keeper, in a temporary home, and the leanest HTTP client there can be: sockets that
// are kept, one request at a time on each.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { ENGINE_FLAGS } from '../../dist/base/engine-flags.js';
import { openKeeper, told } from './keeper.mjs';

export const MAIN = new URL('../../dist/cli/main.js', import.meta.url).pathname;
const PROBE = new URL('./probe.mjs', import.meta.url).pathname;
const PREFIX = '/api/v0/processes';

/**
 * `profile`: a folder for the server's CPU profile, written when it leaves. `probe: false`: nothing is loaded into server
 * and keeper. `trace`: the server tells when requests came and answers went.
 */
export async function openServer(options = {}) {
  const { profile, limits, stalls = false, probe: probed = true, trace = false } = options;
  // Ours, and not the server's: what it does is then not taken for the work of others.
  const keeper = await openKeeper({ limits, stalls, probe: probed, profile });
  const { home } = keeper;
  const probe = join(home, 'server-probe.sock');
  const env = {
    ...process.env,
    ...(probed && { BENCH_PROBE: probe, NODE_OPTIONS: `--import=${PROBE}` }),
    ...(stalls && { BENCH_STALLS: `${probe}.stalls` }),
    ...(trace && { BENCH_TRACE_SOCKET: `${probe}.trace` }),
    ...(profile !== undefined && { BENCH_PROFILE: profile, BENCH_PROFILE_NAME: 'server' }),
  };
  const server = spawn(
    process.execPath,
    [...ENGINE_FLAGS, MAIN, 'serve', '--json', '--home', home, '--token-file', join(home, 'token')],
    {
      env,
      // As one that is started for somebody.
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const [line] = await once(server.stdout, 'data');
  const { url, tokenFile } = JSON.parse(line);
  const token = readFileSync(tokenFile, 'utf8').trim();
  const pool = new Pool(Number(new URL(url).port), token);
  return {
    home,
    port: pool.port,
    token,
    traceSocket: `${probe}.trace`,
    keeperPid: keeper.pid,
    pid: server.pid,
    call: (method, path, body) => pool.json(method, path, body),
    start: (spec) => pool.json('POST', `${PREFIX}/start`, spec),
    /** Answers when it has ended, with what it printed. */
    wait: (id) => pool.json('GET', `${PREFIX}/${id}/output?wait=true`),
    signal: (id) => pool.json('POST', `${PREFIX}/${id}/signal`, { signal: 'kill' }),
    health: () => pool.json('GET', '/v1/health'),
    /** Requests that have no answer yet, this one among them. */
    underWay: async () => {
      const text = await pool.text('GET', '/metrics');
      return Number(/^holdfast_requests_in_flight (\d+)$/m.exec(text)[1]);
    },
    /** The server's own, after a forced collection. */
    memory: () => told(probe),
    /** Of both, the longest time for which their main threads were held up since the last question. */
    stalls: async () => ({ keeper: await keeper.stalls(), server: await told(`${probe}.stalls`) }),
    rssBytes: () =>
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`))[1]) * 1024,
    connections: (count) => pool.open(count),
    async stop() {
      pool.close();
      server.kill('SIGTERM');
      if (server.exitCode === null) await once(server, 'exit');
      await keeper.stop();
    },
  };
}

class Pool {
  constructor(port, token) {
    this.port = port;
    this.head = `Host: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n`;
    this.idle = [];
    this.all = new Set();
  }

  async open(count) {
    const made = Array.from({ length: Math.max(0, count - this.idle.length) }, () => this.made());
    this.idle.push(...(await Promise.all(made)));
  }

  async json(method, path, body) {
    return JSON.parse(await this.text(method, path, body));
  }

  async text(method, path, body) {
    const wire = this.idle.pop() ?? (await this.made());
    const text = body === undefined ? '' : JSON.stringify(body);
    const length =
      body === undefined
        ? ''
        : `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n`;
    const answer = await wire.ask(`${method} ${path} HTTP/1.1\r\n${this.head}${length}\r\n${text}`);
    this.idle.push(wire);
    if (answer.status !== 200 && answer.status !== 201)
      throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
    return answer.text;
  }

  close() {
    for (const { socket } of this.all) socket.destroy();
  }

  async made() {
    const socket = connect(this.port, '127.0.0.1').setNoDelay(true);
    await once(socket, 'connect');
    const wire = new Wire(socket);
    this.all.add(wire);
    return wire;
  }
}

class Wire {
  constructor(socket) {
    this.socket = socket;
    this.parts = [];
    socket.on('data', (chunk) => this.received(chunk));
    socket.on('error', (error) => this.answered?.reject(error));
    socket.on('close', () => this.answered?.reject(new Error('the server has gone')));
  }

  ask(bytes) {
    return new Promise((resolve, reject) => {
      this.answered = { resolve, reject };
      this.socket.write(bytes);
    });
  }

  received(chunk) {
    this.parts.push(chunk);
    const all = this.parts.length === 1 ? chunk : Buffer.concat(this.parts);
    const headEnd = all.indexOf('\r\n\r\n');
    const head = headEnd < 0 ? '' : all.latin1Slice(0, headEnd);
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? Number.NaN);
    const end = headEnd + 4 + length;
    if (!(all.length >= end)) {
      this.parts = [all];
      return;
    }
    this.parts = [];
    const { resolve } = this.answered;
    this.answered = undefined;
    resolve({ status: Number(head.slice(9, 12)), text: all.utf8Slice(headEnd + 4, end) });
  }
}
