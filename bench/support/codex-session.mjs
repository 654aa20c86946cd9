// One codex exec-server, ours or the peer's, and a client that does what every client has to do, and no more.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { WebSocket } from 'ws';
import { nowMs } from './statistics.mjs';

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/** Starts `program words... --listen ws://127.0.0.1:0` and answers its address. */
async function launch(program, words, env) {
  const child = spawn(program, [...words, '--listen', 'ws://127.0.0.1:0'], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [line] = await once(child.stdout, 'data');
  return { child, url: line.toString().trim().split('\n').at(-1) };
}

export async function openOurs() {
  const home = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
  const { child, url } = await launch(process.execPath, [main, 'exec-server', '--home', home], {});
  return {
    url,
    close: async () => {
      child.kill('SIGTERM');
      await once(child, 'exit');
      const stop = spawn(process.execPath, [main, 'shutdown', '--home', home], { stdio: 'ignore' });
      await once(stop, 'exit');
      rmSync(home, { recursive: true, force: true });
    },
  };
}

export async function openPeer(codex) {
  const home = mkdtempSync(join(tmpdir(), 'holdfast-bench-peer-'));
  const { child, url } = await launch(codex, ['exec-server'], { CODEX_HOME: home });
  return {
    url,
    close: async () => {
      child.kill('SIGTERM');
      await once(child, 'exit');
      rmSync(home, { recursive: true, force: true });
    },
  };
}

const OUTPUT = '"process/output"';
const OUTPUT_WITHIN = 64;
const CHUNK = '"chunk":"';
/** More than a chunk has. */
const decoded = Buffer.allocUnsafeSlow(4 * 1024 * 1024);

export class Session {
  id = '';
  #socket;
  #parse;
  #lastId = 0;
  #calls = new Map();
  /** By process: what to do with its notifications. */
  #watchers = new Map();

  static async open({ url }, { resume, whole = true } = {}) {
    const session = new Session();
    session.#parse = whole ? parseWhole : parseAround;
    session.#socket = new WebSocket(url, { perMessageDeflate: false });
    session.#socket.on('message', (data) => session.#received(data));
    session.#socket.on('error', () => undefined);
    await once(session.#socket, 'open');
    session.#socket._socket.setNoDelay(true);
    const { sessionId } = await session.call('initialize', {
      clientName: 'bench',
      resumeSessionId: resume ?? null,
    });
    session.#send({ method: 'initialized', params: {} });
    session.id = sessionId;
    return session;
  }

  async call(method, params) {
    const id = (this.#lastId += 1);
    const answer = await new Promise((resolve) => {
      this.#calls.set(id, resolve);
      this.#send({ id, method, params });
    });
    if (answer.error) throw new Error(`${method}: ${answer.error.message}`);
    return answer.result;
  }

  start(processId, argv, more = {}) {
    const env = { PATH: process.env.PATH };
    const params = { processId, argv, cwd: 'file:///tmp', env, tty: false, pipeStdin: false };
    return this.call('process/start', { ...params, ...more });
  }

  /** Resolves when it has closed, with its output bytes, chunks and the time. */
  closed(processId) {
    const seen = { bytes: 0, chunks: 0 };
    return new Promise((resolve) => {
      this.#watchers.set(processId, (method, bytes) => {
        seen.bytes += bytes;
        if (method === 'process/output') seen.chunks += 1;
        if (method !== 'process/closed') return;
        this.#watchers.delete(processId);
        resolve({ ...seen, atMs: nowMs() });
      });
    });
  }

  /** Resolves with the next output. */
  output(processId) {
    return new Promise((resolve) => {
      this.#watchers.set(processId, (method) => {
        if (method === 'process/output') resolve(nowMs());
      });
    });
  }

  async end() {
    this.#socket.terminate();
    if (this.#socket.readyState !== WebSocket.CLOSED) await once(this.#socket, 'close');
  }

  #send(message) {
    this.#socket.send(JSON.stringify(message));
  }

  #received(data) {
    const { message, bytes } = this.#parse(data);
    const { id, method, params, result, error } = message;
    if (method === undefined) {
      this.#calls.get(id)?.({ result, error });
      this.#calls.delete(id);
      return;
    }
    this.#watchers.get(params.processId)?.(method, bytes);
  }
}

/** Most clients do this: the text of the whole message is parsed, and the chunk in it decoded to a new buffer. */
function parseWhole(data) {
  const message = JSON.parse(data.toString());
  const chunk = message.params?.chunk;
  return { message, bytes: chunk === undefined ? 0 : Buffer.from(chunk, 'base64').length };
}

/** No client can do less: the chunk is decoded to memory that is used again, and what stands around it is parsed. */
function parseAround(data) {
  if (!data.toString('latin1', 0, OUTPUT_WITHIN).includes(OUTPUT)) return parseWhole(data);
  const from = data.indexOf(CHUNK) + CHUNK.length;
  const to = data.indexOf('"', from);
  const bytes = decoded.write(data.toString('latin1', from, to), 'base64');
  return {
    message: JSON.parse(data.toString('latin1', 0, from) + data.toString('latin1', to)),
    bytes,
  };
}
