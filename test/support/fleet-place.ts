// The programs of a fleet for tests: `holdfast join` and `holdfast gateway` on a home of their own, ended with the test.

import { join } from 'node:path';
import { callServer } from '../../src/cli/local/call-server.ts';
import { connect, type Holdfast } from '../../src/index.ts';
import { HoldfastError } from '../../src/protocol/errors.ts';
import { firstLine, Place, type Running } from './command-line.ts';

interface Serving {
  readonly url: string;
  readonly home: string;
  readonly pid: number;
  readonly keeperPid: number;
}

export class FleetPlace extends Place {
  private readonly started: Running[] = [];

  /** Resolves when the program serves. */
  async ready(...args: string[]): Promise<Serving> {
    const program = this.start(...args, '--json');
    this.started.push(program);
    return JSON.parse(await firstLine(program.child.stdout as NodeJS.ReadableStream)) as Serving;
  }

  /** Resolves when the gateway of this home sees the hosts in these states. */
  async states(wanted: Readonly<Record<string, string>>): Promise<void> {
    for (;;) {
      const answer = await callServer(join(this.home, 'gateway'), '/v1/hosts');
      const { hosts } = answer as { hosts: { name: string; state: string; drain: boolean }[] };
      const now = Object.fromEntries(
        hosts.map(({ name, state, drain }) => [name, drain ? 'draining' : state]),
      );
      if (JSON.stringify(now) === JSON.stringify(wanted)) return;
    }
  }

  /** A client of the server of a home. */
  async client(url: string, home: string): Promise<Holdfast> {
    const token = (await this.run('token', 'admin', '--home', home)).stdout.trim();
    return connect({ url, token });
  }

  /** Resolves when the gateway of this home has lost NATS. */
  async away(): Promise<void> {
    for (;;) {
      const answer = await callServer(join(this.home, 'gateway'), '/v1/processes').catch(
        (error: unknown) => error,
      );
      if (answer instanceof HoldfastError && answer.code === 'fabric_degraded') return;
    }
  }

  /** Asks the programs to end, all at once. Resolves with what they end with. */
  async endAll(): Promise<(number | null)[]> {
    const programs = this.started.splice(0);
    for (const { child } of programs) child.kill('SIGTERM');
    return Promise.all(programs.map(async ({ ended }) => (await ended).code));
  }

  override async close(): Promise<void> {
    await this.endAll();
    await super.close();
  }
}
