// Signals that the kernel refuses. As root without the capability KILL, a keeper may not signal another user's process;
// this test has that capability and ends what the keeper cannot.

import { execFileSync, spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { connectKeeper } from '../../src/keeper/connect.ts';
import type { KeeperLink } from '../../src/keeper/link.ts';
import { main } from '../support/command-line.ts';
import {
  leaveStray,
  onCleanup,
  OWNER,
  pages,
  program,
  startProcess,
  stopKeeper,
  temporaryFolder,
  waitFor,
} from '../support/hosts.ts';

const withoutKill = ['--bounding-set=-kill', '--inh-caps=-kill', '--'];
const asNobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--'];
/** An ordinary user cannot give up capabilities, nor start another user's process. */
const isPossible =
  process.getuid?.() === 0 &&
  spawnSync('setpriv', [...withoutKill, ...asNobody, 'true']).status === 0;

async function keeperWithoutKill(home: string): Promise<KeeperLink> {
  // A cgroup would end everything in it, whose ever it is.
  const starter = [process.execPath, program('starter.mjs'), home, '--no-cgroups'];
  execFileSync('setpriv', [...withoutKill, ...starter]);
  onCleanup(() => stopKeeper(home));
  const link = await connectKeeper({ home, env: {}, startIfMissing: false });
  onCleanup(() => link.close());
  return link;
}

/** A program whose own words say that it is there: before them, setpriv is. */
const FOREIGN = 'tail -n +1 -f /etc/passwd';

async function startForeign(link: KeeperLink): Promise<{ id: string; pid: number }> {
  const id = await startProcess(link, { argv: [...asNobody, ...FOREIGN.split(' ')] });
  await waitFor(link, id, { kind: 'text', text: 'root' });
  const { pid } = await link.get(OWNER, { id });
  // Whatever happens: the keeper could not end it.
  onCleanup(() => void spawnSync('kill', ['-KILL', '--', `-${pid}`]));
  return { id, pid };
}

it.skipIf(!isPossible)(
  '[D10] a process of another user is named as refused, and no signal is journalled that was not sent',
  async () => {
    const home = temporaryFolder();
    const link = await keeperWithoutKill(home);
    const { id, pid } = await startForeign(link);
    const refused = [{ pid, command: FOREIGN, reason: 'not_permitted' }];
    const alive = { signalled: [], escapees: [], escalated: false, refused };
    expect(await link.signal(OWNER, { id, signal: 'INT' })).toEqual({ ...alive, survivors: [] });
    const survivors = [{ pid, command: FOREIGN }];
    expect(await link.signal(OWNER, { id, signal: 'terminate' })).toEqual({ ...alive, survivors });
    expect(await link.signal(OWNER, { id, signal: 'KILL' })).toEqual({ ...alive, survivors });
    const stop = spawnSync(process.execPath, [main, 'stop', id, '--home', home, '--owner', OWNER]);
    expect([stop.status, stop.stdout.toString()]).toEqual([
      1,
      expect.stringContaining(`SURVIVED: ${pid} ${FOREIGN} (it belongs to another user)`),
    ]);
    expect((await pages(link, id)).events.map(({ kind }) => kind)).not.toContain('signal');
    process.kill(pid, 'SIGKILL');
    const { process: ended } = await waitFor(link, id, { kind: 'settled' });
    expect(ended.outcome).toEqual({ kind: 'signal', signal: 'SIGKILL', by: 'outside' });
  },
);

it.skipIf(!isPossible)(
  '[X30] an orphan of nobody that a keeper may not end is named when the keeper leaves',
  async () => {
    const link = await keeperWithoutKill(temporaryFolder());
    const [pid = 0] = await leaveStray(link, [...asNobody, 'env', '-i']);
    const { problems, strays } = await link.stop();
    expect(strays).toBeUndefined();
    expect(problems).toEqual([
      expect.stringMatching(`^orphans: ${pid} sh -c .*, which belongs to another user, survived`),
      expect.stringContaining('sleep 1000'),
    ]);
  },
);

it.skipIf(!isPossible)(
  '[D10] members of the group that can be signalled are, and the others are named',
  async () => {
    const link = await keeperWithoutKill(temporaryFolder());
    const script = `${asNobody.join(' ')} sh -c 'echo $$ ready; exec sleep 1000' & wait`;
    const id = await startProcess(link, { command: script });
    const { line = '' } = await waitFor(link, id, { kind: 'text', text: 'ready' });
    const foreign = Number.parseInt(line, 10);
    onCleanup(() => void spawnSync('kill', ['-KILL', String(foreign)]));
    const { pid } = await link.get(OWNER, { id });
    const answer = await link.signal(OWNER, { id, signal: 'terminate', graceMs: 100 });
    expect(answer.signalled).toEqual([pid]);
    // A shell that may just be about to become the program.
    const command = expect.stringContaining('sleep 1000') as string;
    expect(answer.survivors).toEqual([{ pid: foreign, command }]);
    expect(answer.refused).toMatchObject([{ pid: foreign, reason: 'not_permitted' }]);
    expect((await link.get(OWNER, { id })).settled).toBe(false);
    process.kill(foreign, 'SIGKILL');
    expect((await waitFor(link, id, { kind: 'settled' })).met).toBe(true);
  },
);
