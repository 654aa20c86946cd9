// A NATS server for tests: the program of the system, or HOLDFAST_NATS. One per test file, on loopback, killed at its end.

import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { portToKeep } from './ports.ts';

const places = (process.env['PATH'] ?? '').split(':').concat('/usr/sbin', '/usr/local/bin');
const program =
  process.env['HOLDFAST_NATS'] ??
  places.map((folder) => join(folder, 'nats-server')).find((path) => existsSync(path));

/** False: the tests about the fleet are left out, and their name says so. */
export const hasNats = program !== undefined;
export const LEFT_OUT = hasNats ? '' : ' (left out: there is no nats-server)';

export class NatsServer {
  readonly folder = mkdtempSync(join(tmpdir(), 'holdfast-nats-'));
  private child: ChildProcess | undefined;
  private readonly config: string;
  readonly port: number;

  private constructor(port: number, more: string) {
    this.port = port;
    this.config = join(this.folder, 'nats.conf');
    writeFileSync(this.config, `listen: 127.0.0.1:${port}\n${more}\n`);
  }

  /** Resolves when it takes connections. */
  static async start(more = ''): Promise<NatsServer> {
    const server = new NatsServer(await portToKeep(), more);
    await server.run();
    return server;
  }

  static withJetStream(): Promise<NatsServer> {
    return NatsServer.start('jetstream { store_dir: "./js" }');
  }

  /** Three servers that are one, with JetStream. */
  static async cluster(): Promise<NatsServer[]> {
    const routes = [await portToKeep(), await portToKeep(), await portToKeep()];
    const all = routes.map((port) => `nats-route://127.0.0.1:${port}`).join(', ');
    return Promise.all(
      routes.map((port, index) =>
        NatsServer.start(
          `server_name: n${index}
           jetstream { store_dir: "./js" }
           cluster { name: fleet, listen: "127.0.0.1:${port}", routes: [${all}] }`,
        ),
      ),
    );
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return this.child?.pid ?? 0;
  }

  async run(): Promise<void> {
    if (program === undefined) throw new Error('there is no nats-server');
    const child = (this.child = spawn(program, ['-c', this.config], {
      cwd: this.folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    }));
    await new Promise<void>((resolve, reject) => {
      let said = '';
      child.stderr?.on('data', (chunk: Buffer) => {
        said += chunk.toString();
        if (said.includes('Server is ready')) resolve();
      });
      child.once('exit', () => reject(new Error(`nats-server ended: ${said}`)));
    });
  }

  async kill(): Promise<void> {
    const { child } = this;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }

  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    this.child?.kill(name);
  }

  /** With another configuration, on the same port. */
  reload(more: string): void {
    writeFileSync(this.config, `listen: 127.0.0.1:${this.port}\n${more}\n`);
    this.child?.kill('SIGHUP');
  }

  /** What JetStream has stored. Only while it does not run. */
  loseData(): void {
    rmSync(join(this.folder, 'js'), { recursive: true, force: true });
  }

  async remove(): Promise<void> {
    this.signal('SIGCONT');
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

let shared: Promise<NatsServer> | undefined;

/** The one of this test file. */
export function sharedNats(): Promise<NatsServer> {
  shared ??= NatsServer.start();
  return shared;
}

afterAll(async () => {
  await (await shared)?.remove();
  shared = undefined;
});
