// Two keepers of one user: what is in a sandbox of one of them, or in any other, has no rights at the other.

import { describe, expect, it } from 'vitest';
import { openHome } from '../../src/keeper/home.ts';
import type { KeeperLink } from '../../src/keeper/link.ts';
import type { StartSpec } from '../../src/protocol/operations.ts';
import { serve } from '../support/coder-client.ts';
import { main } from '../support/command-line.ts';
import {
  onCleanup,
  OWNER,
  overKeeper,
  startProcess,
  stopKeeper,
  temporaryFolder,
} from '../support/hosts.ts';
import { inNamespace, namespaces } from '../support/namespaces.ts';

const cli = `${process.execPath} ${main}`;

/** The output of a command that the keeper starts. */
async function inside(
  link: KeeperLink,
  command: string,
  sandbox?: StartSpec['sandbox'],
): Promise<string> {
  const { process: started } = await link.start('alice', { command, ...(sandbox && { sandbox }) });
  await link.wait('alice', { waits: [{ id: started.id, for: [{ kind: 'closed' }] }] });
  return (await link.text('alice', { id: started.id })).text;
}

describe('a keeper of another state directory', () => {
  it('[K88] refuses what is in a sandbox of the first one, with the reason, and so does its server', async () => {
    const first = await overKeeper();
    const served = await serve({ keeperArgs: ['--idle-ms', '60000'] });
    onCleanup(() => served.stop());
    const { home, server } = served;
    await server.host.start('bob', { command: 'sleep 1000', name: 'of-bob' });
    const means = await first.enforcement(OWNER, {});
    const boxes: StartSpec['sandbox'][] = [{ privileges: 'drop' }];
    if (means.hide.by === 'bubblewrap') boxes.push({ fs: 'read-only' });
    for (const words of ['ps', 'ps --owner bob', 'run true', 'stop of-bob', 'shutdown'])
      for (const box of boxes) {
        const text = await inside(first, `HOLDFAST_HOME=${home} ${cli} ${words}`, box);
        const said = expect.stringContaining('of another state directory') as unknown;
        expect([words, text]).toEqual([words, said]);
        expect(text).not.toContain('of-bob');
      }
    const socket = openHome(home).serverSocket;
    const curl = `curl -s --unix-socket ${socket} http://localhost/v1/processes`;
    const text = await inside(first, curl, { privileges: 'drop' });
    expect(JSON.parse(text)).toMatchObject({
      error: { code: 'from_inside', details: { confinedBy: 'keeper' } },
    });
    const { processes } = await server.host.list('bob', {});
    expect(processes.map(({ state }) => state)).toEqual(['running']);
  });

  it('[K88] serves what is in no sandbox, and all of the first keeper if that started it', async () => {
    const first = await overKeeper();
    for (const sandbox of [undefined, { privileges: 'drop' } as const]) {
      const home = temporaryFolder();
      onCleanup(() => stopKeeper(home));
      expect(await inside(first, `${cli} run --home ${home} 'echo made'`, sandbox)).toBe('made\n');
      expect(await inside(first, `${cli} ps --all --home ${home}`, sandbox)).toContain('echo made');
    }
    const home = temporaryFolder();
    await startProcess(await overKeeper({ folder: home }), { command: 'sleep 1000' });
    expect(await inside(first, `${cli} ps --all --home ${home}`)).toContain('sleep 1000');
  });
});

describe.skipIf(!namespaces)('a program in a pid namespace of its own', () => {
  it('[K88] is refused with the reason, unless the keeper is in it, too', async () => {
    const home = temporaryFolder();
    const link = await overKeeper({ folder: home });
    await link.start('bob', { command: 'sleep 1000', name: 'of-bob' });
    const text = await inNamespace(`${cli} ps --owner bob --home ${home}`);
    expect(text).toContain('in a pid namespace of its own');
    expect(text).not.toContain('of-bob');
    const own = `${cli} run 'echo made'; ${cli} ps --all; ${cli} shutdown`;
    expect(await inNamespace(own)).toMatch(/^made\n[^]*echo made/);
  });
});
