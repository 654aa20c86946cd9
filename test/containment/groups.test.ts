// Cgroups of processes: what is in them is found, counted and ended, whatever it did to its environment and session.

import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ownGroup } from '../../src/system/confine/cgroups.ts';
import { main } from '../support/command-line.ts';
import {
  OWNER,
  inProcess,
  onCleanup,
  overKeeper,
  startProcess,
  temporaryFolder,
  waitFor,
} from '../support/hosts.ts';
import { sized } from '../support/slow.ts';

const found = ownGroup();
const own = typeof found === 'string' ? found : '';
const means = await (await inProcess({ groups: true })).enforcement(OWNER, {});
const has = means.group.by === 'cgroup';
if (!has) console.warn(`left out: groups, because ${means.group.why}`);

const [FAMILIES, FAMILIES_OF_DEAD] = [sized(20, 100), sized(1, 100)];
const TIMEOUT_MS = sized(120_000, 600_000);

async function many<T>(count: number, make: () => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, make));
}

const isAlive = (pid: number): boolean =>
  existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));

/** Leaves the session, the environment and every parent; prints its number. */
const ESCAPE = `setsid env -i sh -c '(sh -c "echo escaped \\$\\$; exec sleep 1000 > /dev/null 2>&1" &)' & wait`;

async function escapee(host: Awaited<ReturnType<typeof overKeeper>>, count = 1) {
  const id = await startProcess(host, {
    command: `${ESCAPE}\n`.repeat(count) + 'echo left; read _',
    stdin: 'pipe',
  });
  await waitFor(host, id, { kind: 'text', text: 'left' });
  const pids: number[] = [];
  for (let from = 0; pids.length < count;) {
    const { line = '', offset } = await waitFor(host, id, {
      kind: 'pattern',
      pattern: 'escaped \\d+',
      from,
    });
    pids.push(Number(line.split(' ')[1]));
    from = offset;
    if (pids.length < count) {
      const { text } = await host.text(OWNER, { id });
      const all = Array.from(text.matchAll(/escaped (\d+)/g), ([, pid]) => Number(pid));
      if (all.length >= count) pids.splice(0, pids.length, ...all);
      else await waitFor(host, id, { kind: 'growth', after: (await host.get(OWNER, { id })).seq });
    }
  }
  for (const pid of pids)
    onCleanup(() => void (isAlive(pid) && spawnSync('kill', ['-KILL', String(pid)])));
  return { id, pids };
}

describe.skipIf(!has)('the cgroup of a process', () => {
  it('[CT10] an orphan without session, environment and parents is still known, and ended with its process', async () => {
    const host = await overKeeper();
    const { id, pids } = await escapee(host);
    await host.write(OWNER, { id, data: Buffer.from('\n') });
    await waitFor(host, id, { kind: 'exit' });
    expect((await host.get(OWNER, { id })).settled).toBe(false);
    const { signalled, survivors } = await host.signal(OWNER, { id, signal: 'terminate' });
    expect([signalled, survivors]).toEqual([pids, []]);
    await waitFor(host, id, { kind: 'settled' });
    expect(pids.filter(isAlive)).toEqual([]);
  });

  it(
    `[CT10] also after their keeper was killed: the next one finds and ends ${FAMILIES_OF_DEAD}`,
    { timeout: TIMEOUT_MS },
    async () => {
      const folder = temporaryFolder();
      const first = await overKeeper({ folder });
      const families = await many(FAMILIES_OF_DEAD, () => escapee(first));
      process.kill(first.keeper.pid, 'SIGKILL');
      await first.ended;
      const second = await overKeeper({ folder });
      for (const { id, pids } of families) {
        const info = await second.get(OWNER, { id });
        expect([info.outcome?.kind, info.settled, pids.filter(isAlive)]).toEqual([
          'lost',
          false,
          pids,
        ]);
      }
      await Promise.all(families.map(({ id }) => second.signal(OWNER, { id, signal: 'kill' })));
      for (const { id } of families) await waitFor(second, id, { kind: 'settled' });
      expect(families.flatMap(({ pids }) => pids).filter(isAlive)).toEqual([]);
    },
  );

  it('[CT11] counts all that ran in it, also what nobody waited for', async () => {
    const host = await overKeeper();
    const busy = `${process.execPath} -e 'while (process.cpuUsage().user + process.cpuUsage().system < 300e3);'`;
    // A parent that ignores SIGCHLD waits for no child.
    const id = await startProcess(host, {
      argv: ['perl', '-e', `$SIG{CHLD} = 'IGNORE'; system(q(${busy})); exit 0`],
    });
    await waitFor(host, id, { kind: 'settled' });
    const { usage } = await host.get(OWNER, { id });
    expect(usage).toMatchObject({ by: 'cgroup', complete: true });
    expect((usage?.userMs ?? 0) + (usage?.systemMs ?? 0)).toBeGreaterThanOrEqual(300);
  });

  it('[CT12] is removed with the process, and never lies outside the group that the keeper was started in', async () => {
    const host = await overKeeper();
    const id = await startProcess(host, {
      command: 'cat /proc/self/cgroup; read _',
      stdin: 'pipe',
    });
    const { line = '' } = await waitFor(host, id, { kind: 'pattern', pattern: '^0::.*hf-' });
    const path = line.slice(3);
    const top = execFileSync('sh', ['-c', 'grep ^0:: /proc/self/cgroup'], { encoding: 'utf8' });
    expect(path.startsWith(top.trim().slice(3))).toBe(true);
    expect(path).toMatch(new RegExp(`holdfast-[0-9a-f]+-\\d+-${host.keeper.pid}/hf-`));
    const folder = join(own, path.slice(top.trim().slice(3).length));
    expect(existsSync(folder)).toBe(true);
    await host.write(OWNER, { id, data: Buffer.from('\n') });
    await waitFor(host, id, { kind: 'settled' });
    await host.stop();
    expect(existsSync(folder)).toBe(false);
    expect(readdirSync(own).filter((name) => name.includes(`-${host.keeper.pid}`))).toEqual([]);
  });

  it('[CT13] a keeper in another pid namespace removes no group of a living one, and the next of its home does', async (context) => {
    const host = await overKeeper();
    const name = readdirSync(own).find((each) => each.endsWith(`-${host.keeper.pid}`)) ?? 'none';
    // As one that is prepared for the next start.
    const prepared = join(own, name, 'hf-prepared');
    mkdirSync(prepared);
    const home = temporaryFolder();
    const world = ['--pid', '--fork', '--mount-proc', process.execPath, main];
    const inner = ['run', '--home', home, 'grep ^0:: /proc/self/cgroup'];
    // The end of its first program ends everything in the namespace, that keeper too.
    const elsewhere = spawnSync('unshare', [...world, ...inner], { encoding: 'utf8' });
    if (elsewhere.status !== 0) context.skip(`no pid namespace: ${elsewhere.stderr}`);
    expect(existsSync(prepared)).toBe(true);
    const left = /holdfast-[0-9a-f]+-\d+-\d+/.exec(elsewhere.stdout)?.[0] ?? '';
    expect(existsSync(join(own, left))).toBe(true);
    await (await overKeeper({ folder: home })).stop();
    expect(existsSync(join(own, left))).toBe(false);
  });

  it(
    `[CT10] ${FAMILIES} families of escapees at once, each ended alone`,
    { timeout: TIMEOUT_MS },
    async () => {
      const host = await overKeeper();
      const families = await many(FAMILIES, () => escapee(host));
      const [spared, ...others] = families;
      await Promise.all(others.map(({ id }) => host.signal(OWNER, { id, signal: 'kill' })));
      expect(others.flatMap(({ pids }) => pids).filter(isAlive)).toEqual([]);
      expect(spared?.pids.filter(isAlive)).toEqual(spared?.pids);
    },
  );
});
