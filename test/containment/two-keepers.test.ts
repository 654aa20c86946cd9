// Two keepers of one user: what one of them started, or what is in a sandbox, has no rights at the other.

import { describe, expect, it } from 'vitest';
import { openHome } from '../../src/keeper/home.ts';
import type { KeeperLink } from '../../src/keeper/link.ts';
import { serve } from '../support/coder-client.ts';
import { main } from '../support/command-line.ts';
import { onCleanup, overKeeper, stopKeeper, temporaryFolder } from '../support/hosts.ts';
import { inNamespace, namespaces } from '../support/namespaces.ts';

const cli = `${process.execPath} ${main}`;

/** The output of a command that the keeper starts. */
async function inside(link: KeeperLink, command: string): Promise<string> {
  const { process: started } = await link.start('alice', { command });
  await link.wait('alice', { waits: [{ id: started.id, for: [{ kind: 'closed' }] }] });
  return (await link.text('alice', { id: started.id })).text;
}

describe('a keeper of another state directory', () => {
  it('[K88] refuses what the first one started, with the reason, and so does its server', async () => {
    const first = await overKeeper();
    const served = await serve({ keeperArgs: ['--idle-ms', '60000'] });
    onCleanup(() => served.stop());
    const { home, server } = served;
    await server.host.start('bob', { command: 'sleep 1000', name: 'of-bob' });
    for (const words of ['ps', 'ps --owner bob', 'run true', 'stop of-bob', 'shutdown']) {
      const text = await inside(first, `HOLDFAST_HOME=${home} ${cli} ${words}`);
      expect([words, text]).toEqual([words, expect.stringContaining('of another state directory')]);
      expect(text).not.toContain('of-bob');
    }
    const socket = openHome(home).serverSocket;
    const text = await inside(
      first,
      `curl -s --unix-socket ${socket} http://localhost/v1/processes`,
    );
    expect(JSON.parse(text)).toMatchObject({
      error: { code: 'from_inside', details: { confinedBy: 'keeper' } },
    });
    const { processes } = await server.host.list('bob', {});
    expect(processes.map(({ state }) => state)).toEqual(['running']);
  });

  it('[K88] serves what came from the same process of the first keeper as itself, or from another of its processes', async () => {
    const first = await overKeeper();
    const home = temporaryFolder();
    onCleanup(() => stopKeeper(home));
    expect(await inside(first, `${cli} run --home ${home} 'echo made'`)).toBe('made\n');
    expect(await inside(first, `${cli} ps --all --home ${home}`)).toContain('echo made');
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
