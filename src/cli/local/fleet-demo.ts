// A fleet on this machine for `holdfast fleet demo`: three nodes of NATS, three hosts and a gateway on loopback, in a temporary
// folder, until the tour is over.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { ENGINE_FLAGS } from '../../base/engine-flags.ts';
import { connect } from '../../client/connect.ts';
import type { Holdfast } from '../../client/holdfast.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { formatDuration } from '../arguments/units.ts';
import type { Narrator } from '../output/narrator.ts';
import { callServer } from './call-server.ts';

const NODES = 3;
const HOSTS = ['h1', 'h2', 'h3'];
const LOOK_MS = 20;

interface Serving {
  readonly url: string;
  readonly keeperPid: number;
  readonly child: ChildProcess;
}

/** The program of the system, or HOLDFAST_NATS. */
function natsProgram(env: NodeJS.ProcessEnv): string {
  const given = env['HOLDFAST_NATS'];
  const folders = (env['PATH'] ?? '').split(':').concat('/usr/sbin', '/usr/local/bin');
  const found = given ?? folders.map((each) => join(each, 'nats-server')).find(existsSync);
  if (found !== undefined && existsSync(found)) return found;
  throw new HoldfastError('not_found', `There is no nats-server${given ? ` at ${given}` : ''}.`, {
    remedy: 'Install it (on Debian: apt-get install nats-server), or name it with HOLDFAST_NATS.',
  });
}

export async function demonstrateFleet(env: NodeJS.ProcessEnv, say: Narrator): Promise<object> {
  const program = natsProgram(env);
  const fleet = new DemoFleet(env);
  const interrupted = new Promise<never>((_resolve, reject) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.once(signal, () => reject(new HoldfastError('aborted', `Ended by ${signal}.`)));
  });
  try {
    return await Promise.race([tour(fleet, program, say), interrupted]);
  } finally {
    await fleet.close();
  }
}

async function tour(fleet: DemoFleet, program: string, say: Narrator): Promise<object> {
  await say.part('Three nodes of NATS, a gateway and three hosts start on this machine');
  const urls = await fleet.startNodes(program);
  await say.line(`NATS: ${urls.join(', ')}`);
  const gateway = await fleet.serve('gateway', urls, 'g1');
  await say.line(`The gateway serves ${gateway.url}`);
  const hosts = new Map<string, Serving>();
  for (const name of HOSTS) hosts.set(name, await fleet.serve('join', urls, name));
  await fleet.states(
    (all) => all.length === HOSTS.length && all.every(({ state }) => state === 'here'),
  );
  await say.line(`The hosts ${HOSTS.join(', ')} have joined.`);
  const client = await connect({ url: gateway.url, token: fleet.token });
  try {
    await say.part('One address starts and finds processes on all of them');
    for (const name of HOSTS) {
      const { id } = await client.start('echo "I run at $HOST"; exec sleep 600', {
        labels: { 'host.name': name },
        env: { HOST: name },
      });
      await say.line(`${name}/${id.slice(0, 12)}  runs`);
    }
    return await loseHost(fleet, { client, hosts, say });
  } finally {
    await client.close();
  }
}

interface Losing {
  readonly client: Holdfast;
  readonly hosts: ReadonlyMap<string, Serving>;
  readonly say: Narrator;
}

async function loseHost(fleet: DemoFleet, { client, hosts, say }: Losing): Promise<object> {
  const [lost = ''] = HOSTS;
  await say.part(`The server and the keeper of ${lost} are killed, as if its machine had died`);
  const { child, keeperPid = 0 } = hosts.get(lost) ?? {};
  child?.kill('SIGKILL');
  process.kill(keeperPid, 'SIGKILL');
  const began = performance.now();
  await fleet.states((all) => all.some(({ name, state }) => name === lost && state !== 'here'));
  const knownMs = performance.now() - began;
  await say.line(`The gateway saw it after ${formatDuration(knownMs)}.`);
  const { processes, incomplete = [] } = await fleet.list();
  await say.line(
    `A list has ${processes.length} processes, and says whose are missing: ${incomplete.join(', ')}.`,
  );
  const next = await client.start('true');
  const { exitCode } = await next.waitForExit();
  const where = (await next.status()).host ?? '';
  await say.line(
    `New processes go to the others: one ran at ${where} and exited with code ${exitCode}.`,
  );
  await say.line(
    'Nothing was restarted or ended because a host is silent: a state is an observation.',
  );
  await say.part('Everything ends; docs/fleet.md shows the same with several machines');
  return { lost, knownMs: Math.round(knownMs), incomplete, where };
}

interface HostState {
  readonly name: string;
  readonly state: string;
}

interface List {
  readonly processes: readonly unknown[];
  readonly incomplete?: readonly string[];
}

class DemoFleet {
  private readonly folder = mkdtempSync(join(tmpdir(), 'holdfast-demo-'));
  private readonly env: NodeJS.ProcessEnv;
  private readonly children: ChildProcess[] = [];
  private readonly homes: string[] = [];

  constructor(env: NodeJS.ProcessEnv) {
    this.env = env;
  }

  get token(): string {
    return readFileSync(join(this.folder, 'token'), 'utf8').trim();
  }

  async startNodes(program: string): Promise<string[]> {
    const ports = await freePorts(2 * NODES);
    const routes = ports.slice(NODES).map((port) => `nats-route://127.0.0.1:${port}`);
    return Promise.all(
      routes.map(async (_route, node) => {
        const config = join(this.folder, `n${node}.conf`);
        writeFileSync(
          config,
          [
            `server_name: n${node}`,
            `listen: "127.0.0.1:${ports[node]}"`,
            `jetstream { store_dir: "${join(this.folder, `n${node}`)}" }`,
            `cluster { name: demo, listen: "127.0.0.1:${ports[NODES + node]}", routes: [${routes.join(', ')}] }`,
          ].join('\n'),
        );
        const child = this.spawned(program, ['-c', config]);
        await said(child, 'stderr', 'Server is ready');
        return `nats://127.0.0.1:${ports[node]}`;
      }),
    );
  }

  /** A gateway or a host, once it serves. */
  async serve(role: 'gateway' | 'join', urls: readonly string[], name: string): Promise<Serving> {
    const home = join(this.folder, name);
    this.homes.push(home);
    const more = role === 'gateway' ? ['--token-file', join(this.folder, 'token')] : [];
    const words = [role, urls.join(','), '--name', name, '--home', home, ...more, '--json'];
    const child = this.spawned(process.execPath, [...ENGINE_FLAGS, ...self(), ...words]);
    const ready = JSON.parse(await said(child, 'stdout', '\n')) as Omit<Serving, 'child'>;
    return { ...ready, child };
  }

  /** Resolves when the hosts, as the gateway sees them, are as wanted. */
  async states(isSo: (hosts: readonly HostState[]) => boolean): Promise<void> {
    for (;;) {
      const { hosts } = (await this.ask('/v1/hosts')) as { hosts: readonly HostState[] };
      if (isSo(hosts)) return;
      await pause(LOOK_MS);
    }
  }

  async list(): Promise<List> {
    return (await this.ask('/v1/processes')) as List;
  }

  async close(): Promise<void> {
    for (const home of this.homes)
      await once(
        spawn(process.execPath, [...self(), 'shutdown', '--home', home], { stdio: 'ignore' }),
        'close',
      );
    for (const child of this.children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  private ask(path: string): Promise<unknown> {
    return callServer(join(this.folder, 'g1', 'gateway'), path);
  }

  /** In a session of its own: Ctrl-C is for the tour. */
  private spawned(file: string, args: readonly string[]): ChildProcess {
    const env = { ...this.env, HOLDFAST_HOME: undefined };
    const child = spawn(file, args, { env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    this.children.push(child);
    return child;
  }
}

function self(): string[] {
  return [process.argv[1] ?? ''];
}

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

/** What a program has printed, once that contains this text. What it prints later is read and dropped. */
function said(child: ChildProcess, sink: 'stdout' | 'stderr', wanted: string): Promise<string> {
  const other = sink === 'stdout' ? 'stderr' : 'stdout';
  child[other]?.resume();
  return new Promise((resolve, reject) => {
    let text = '';
    child[sink]?.on('data', (chunk: Buffer) => {
      if (text.length > 64 * 1024) return;
      text += chunk.toString();
      if (text.includes(wanted)) resolve(text);
    });
    const ended = (): void => reject(new Error(`${child.spawnfile} ended: ${text.trim()}`));
    child.once('error', reject);
    child.once('exit', ended);
  });
}
