// Ceilings that cgroups keep: of all processes together, of a token, and of a keeper that is given a part of the machine.

import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import type { HostApi } from '../../src/protocol/host-api.ts';
import type { StartSpec } from '../../src/protocol/operations.ts';
import { Tokens } from '../../src/server/http/tokens.ts';
import { main } from '../support/command-line.ts';
import { serve } from '../support/coder-client.ts';
import { fill, groupOfTests, hasControllers } from '../support/controllers.ts';
import { onCleanup, OWNER, overKeeper, temporaryFolder } from '../support/hosts.ts';

const MiB = 1024 * 1024;
const MEMORY = 16 * MiB;
/** More than that, in millions of bytes. */
const TOO_MUCH = 30;
const NOBODY = 65_534;

async function ended(host: HostApi, spec: StartSpec, owner = OWNER) {
  const { process: started } = await host.start(owner, spec);
  const { id } = started;
  await host.wait(owner, { waits: [{ id, for: [{ kind: 'settled' }] }] });
  return host.get(owner, { id });
}

describe('the ceiling of all processes together', () => {
  it('[CT40] is refused where nothing can keep it', async () => {
    const keeperArgs = ['--no-cgroups', '--idle-ms', '60000'];
    await expect(serve({ keeperArgs, limitsTotal: { pids: 100 } })).rejects.toMatchObject({
      code: 'limit_unenforceable',
      details: { field: 'total.pids' },
    });
  });

  it.skipIf(!hasControllers)(
    '[CT40] holds for processes without limits of their own, also in the next keeper, until it is lifted',
    async () => {
      const served = await serve({ limitsTotal: { memory: MEMORY, pids: 8 } });
      onCleanup(() => served.stop());
      const { host } = served.server;
      const isHeld = async (): Promise<void> => {
        const full = await ended(host, { argv: ['perl', '-e', `$x = "x" x ${TOO_MUCH}e6`] });
        expect([full.outcome, full.causes]).toEqual([
          { kind: 'oom', signal: 'SIGKILL' },
          [{ kind: 'out_of_memory', victims: 1 }],
        ]);
        const many = await ended(host, {
          command: 'for n in 1 2 3 4 5 6 7 8 9; do sleep 1 & done',
        });
        expect(many.causes?.map(({ kind }) => kind)).toEqual(['pids_limit']);
      };
      await isHeld();
      process.kill((await host.link()).keeper.pid, 'SIGKILL');
      await (
        await host.link()
      ).ended;
      await isHeld();
      await host.enforcement('*', { total: {} });
      const full = await ended(host, { command: fill(TOO_MUCH) });
      expect([full.outcome, full.causes]).toEqual([{ kind: 'exit', code: 0 }, undefined]);
    },
  );
});

describe.skipIf(!hasControllers)('the ceiling of a token', () => {
  it('[CT41] of memory and processes holds by cgroup for a start that asks for nothing', async () => {
    const home = temporaryFolder();
    const host = await overKeeper({ folder: home });
    const limits = { memory: MEMORY, pids: 5 };
    new Tokens(home, systemClock).create('alice', undefined, undefined, { level: 'none', limits });
    const full = await ended(host, { command: `${fill(TOO_MUCH)}; exit 3` }, 'alice');
    expect(full.confinement).toEqual({
      none: true,
      memory: { limit: MEMORY, by: 'cgroup' },
      pids: { limit: 5, by: 'cgroup' },
    });
    expect([full.outcome, full.causes]).toEqual([
      { kind: 'exit', code: 3 },
      [{ kind: 'memory_limit', victims: 1 }],
    ]);
    await expect(
      ended(host, { command: 'true', limits: { memory: MEMORY + MiB } }, 'alice'),
    ).rejects.toMatchObject({ code: 'above_ceiling' });
  });
});

/** A group that belongs to another user, as a service manager delegates it. */
function delegated(): string {
  const group = join(groupOfTests(), `delegated-${process.pid}`);
  mkdirSync(group);
  for (const name of ['', 'cgroup.procs', 'cgroup.subtree_control', 'cgroup.threads'])
    chownSync(join(group, name), NOBODY, NOBODY);
  onCleanup(() => {
    const all = readdirSync(group, { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name));
    for (const each of [...all.sort().toReversed(), group]) rmdirSync(each);
  });
  return group;
}

const AS_NOBODY = ['--reuid=65534', '--regid=65534', '--clear-groups', '--'];

describe.skipIf(!hasControllers || process.getuid?.() !== 0)('a delegated group', () => {
  it('[CT42] gives a keeper of another user every limit, and the next one too, which its server starts', async () => {
    const [group, folder] = [delegated(), temporaryFolder()];
    chmodSync(folder, 0o755);
    const home = join(folder, 'h');
    mkdirSync(home, { mode: 0o700 });
    chmodSync(home, 0o700);
    chownSync(home, NOBODY, NOBODY);
    const env = { ...process.env, HOME: home, HOLDFAST_HOME: home };
    const up = spawn(
      'sh',
      ['-c', 'echo $$ > "$0/cgroup.procs"; exec "$@"', group, 'setpriv', ...AS_NOBODY].concat(
        process.execPath,
        main,
        'up',
        '--port',
        '0',
      ),
      { env, cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] },
    );
    onCleanup(() => end(up, group));
    await once(up.stdout ?? up, 'data');
    const ask = (path: string, body?: object): Record<string, unknown> => {
      const words = body
        ? ['-d', JSON.stringify(body), '-H', 'Content-Type: application/json']
        : [];
      const socket = ['--unix-socket', join(home, 'server.sock')];
      const { stdout } = spawnSync(
        'setpriv',
        [...AS_NOBODY, 'curl', '-s', ...socket, `http://localhost${path}`, ...words],
        { encoding: 'utf8' },
      );
      return JSON.parse(stdout) as Record<string, unknown>;
    };
    const isHeld = (): void => {
      const command = `cat /proc/self/cgroup; ${fill(TOO_MUCH)}; exit 3`;
      const answer = ask('/v1/run', { command, limits: { memory: MEMORY, pids: 10, cpus: 1 } });
      expect(answer['process']).toMatchObject({
        outcome: { kind: 'exit', code: 3 },
        causes: [{ kind: 'memory_limit', victims: 1 }],
      });
      expect(JSON.stringify(answer)).toMatch(/delegated-\d+\/holdfast-[0-9a-f]+-\d+-\d+\/hf-/);
    };
    isHeld();
    up.kill('SIGKILL');
    await once(up, 'exit');
    isHeld();
    expect(readFileSync(join(group, 'cgroup.procs'), 'utf8')).toBe('');
  });
});

/** Everything that was started in the group. */
async function end(up: ChildProcess, group: string): Promise<void> {
  spawnSync('sh', ['-c', 'echo 1 > "$0/cgroup.kill"', group]);
  if (up.exitCode === null && up.signalCode === null) await once(up, 'exit');
  while (/^populated 1$/m.test(readFileSync(join(group, 'cgroup.events'), 'utf8')))
    await new Promise((resolve) => setImmediate(resolve));
}
