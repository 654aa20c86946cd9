// A caller of the native dialect with a token of its own: kept connections, many requests at once, and requests whose
// answer nobody reads.

import { execFileSync } from 'node:child_process';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';

const MAIN = new URL('../../dist/cli/main.js', import.meta.url).pathname;

/** A token that speaks for one owner. */
export function tokenFor(home, owner) {
  const words = [MAIN, 'token', 'create', '--for', owner, '--home', home];
  return execFileSync(process.execPath, words, { encoding: 'utf8' }).trim();
}

export class HttpCaller {
  constructor(port, token, { maxSockets = 64 } = {}) {
    this.port = port;
    this.token = token;
    this.agent = new Agent({ keepAlive: true, maxSockets });
    this.mutes = new Set();
  }

  /** The status and the answer, whatever it is. */
  ask(method, path, body) {
    const payload = typeof body === 'string' || body === undefined ? body : JSON.stringify(body);
    return new Promise((resolve, reject) => {
      const sent = request(
        {
          host: '127.0.0.1',
          port: this.port,
          method,
          path,
          agent: this.agent,
          headers: {
            Authorization: `Bearer ${this.token}`,
            ...(payload !== undefined && { 'Content-Type': 'application/json' }),
          },
        },
        (response) => {
          const chunks = [];
          response.on('data', (chunk) => chunks.push(chunk));
          response.on('end', () =>
            resolve({ status: response.statusCode, text: Buffer.concat(chunks).toString() }),
          );
          response.on('error', reject);
        },
      );
      sent.on('error', reject);
      sent.end(payload);
    });
  }

  /** The answer as JSON; anything but success is an error. */
  async json(method, path, body) {
    const { status, text } = await this.ask(method, path, body);
    if (status !== 200 && status !== 201) throw new Error(`${method} ${path}: ${status} ${text}`);
    return JSON.parse(text);
  }

  async start(spec) {
    return (await this.json('POST', '/v1/processes', spec)).process.id;
  }

  ended(id) {
    return this.json('POST', '/v1/wait', { waits: [{ id, for: [{ kind: 'exit' }] }] });
  }

  /** Asks, and never reads. */
  mute(path) {
    const socket = connect(this.port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.pause();
    const head = `Host: 127.0.0.1:${this.port}\r\nAuthorization: Bearer ${this.token}`;
    socket.write(`GET ${path} HTTP/1.1\r\n${head}\r\n\r\n`);
    this.mutes.add(socket);
  }

  hangUp() {
    for (const socket of this.mutes) socket.destroy();
    this.mutes.clear();
  }

  close() {
    this.hangUp();
    this.agent.destroy();
  }
}
