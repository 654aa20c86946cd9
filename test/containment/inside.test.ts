// Programs that the keeper started, and what came from them: they act for the owner of their process, and for nobody else.
// Each is a real command inside a real keeper.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openHome } from '../../src/keeper/home.ts';
import type { KeeperLink } from '../../src/keeper/link.ts';
import { main } from '../support/command-line.ts';
import { onCleanup, overKeeper, program, startProcess, temporaryFolder } from '../support/hosts.ts';
import { serve } from '../support/coder-client.ts';

const cli = `${process.execPath} ${main}`;

/** A keeper with a process of each of two owners, and a way to run a command inside, as a process of the first. */
async function twoOwners(options: { groups?: boolean } = {}): Promise<{
  home: string;
  link: KeeperLink;
  inside: (command: string) => Promise<{ code: number | undefined; text: string }>;
}> {
  const home = temporaryFolder();
  const link = await overKeeper({ folder: home, ...options });
  for (const owner of ['alice', 'bob'])
    await startProcess(link, { command: 'sleep 1000', name: `of-${owner}` }, owner);
  return { home, link, inside: (command) => runInside(link, home, command) };
}

async function runInside(
  link: KeeperLink,
  home: string,
  command: string,
): Promise<{ code: number | undefined; text: string }> {
  const env = { HOLDFAST_HOME: home };
  const { process: started } = await link.start('alice', { command, env });
  const { id } = started;
  await link.wait('alice', { waits: [{ id, for: [{ kind: 'closed' }] }] });
  const { outcome } = await link.get('alice', { id });
  const { text } = await link.text('alice', { id });
  return { code: outcome?.kind === 'exit' ? outcome.code : undefined, text };
}

describe('the command line inside a process', () => {
  it('[K82] sees, starts and stops what belongs to the owner of the process, and nothing else', async () => {
    const { inside, link } = await twoOwners();
    const listed = await inside(`${cli} ps`);
    expect([listed.code, listed.text]).toEqual([0, expect.stringContaining('of-alice')]);
    expect(listed.text).not.toContain('of-bob');
    expect(await inside(`${cli} run 'echo started; exit 3'`)).toMatchObject({ code: 3 });
    const owners = (await link.list('*', {})).processes.map(({ owner }) => owner);
    expect(new Set(owners)).toEqual(new Set(['alice', 'bob']));
    expect((await inside(`${cli} stop of-bob`)).code).toBe(3);
    expect((await inside(`${cli} stop of-alice`)).code).toBe(0);
    const { processes } = await link.list('bob', {});
    expect(processes.map(({ state }) => state)).toEqual(['running']);
  });

  it('[K82] another owner, the end of the keeper, its server and its tokens are refused with the reason', async () => {
    const { inside, link } = await twoOwners();
    for (const words of [
      'run --owner bob true',
      'ps --owner bob',
      'shutdown',
      'restart',
      'serve',
      'serve --insecure-no-auth --resume --port 0 --socket none',
      'token create --for bob',
      'token list',
    ]) {
      const { code, text } = await inside(`${cli} ${words}`);
      const exit = words.startsWith('run') ? 125 : 12;
      expect([words, code, text]).toEqual([words, exit, expect.stringContaining('"alice"')]);
    }
    expect((await link.list('*', { state: 'running' })).processes).toHaveLength(2);
  });

  it('[K83] one that left session, parents and environment is refused where there are no cgroups; one that kept its session or its marker is not', async () => {
    const { inside, home } = await twoOwners({ groups: false });
    const fifo = join(temporaryFolder(), 'answer');
    // The parent of each has ended before it asks.
    const orphan = (prefix: string): Promise<{ text: string }> =>
      inside(
        `mkfifo ${fifo}; (${prefix} sh -c 'while [ "$(ps -o ppid= -p $$ | tr -d " ")" = "$1" ]; do :; done; ${cli} ps --home ${home} > ${fifo} 2>&1' sh $$ &) ; cat ${fifo}; rm ${fifo}`,
      );
    expect((await orphan('')).text).toContain('of-alice');
    expect((await orphan('setsid')).text).toContain('of-alice');
    expect((await orphan('env -i PATH="$PATH"')).text).toContain('of-alice');
    const { text } = await orphan('setsid env -i PATH="$PATH"');
    expect(text).toContain('nobody knows which process');
    expect(text).not.toContain('of-');
  });

  it('[K83] a marker of another owner does not count against parents or session', async () => {
    const { inside, link } = await twoOwners();
    const { id } = (await link.list('bob', {})).processes[0] ?? { id: '' };
    const forged = `HOLDFAST_PROCESS=${id}`;
    expect((await inside(`env ${forged} ${cli} ps`)).text).toContain('of-alice');
    expect((await inside(`${forged} ${cli} ps`)).text).not.toContain('of-bob');
  });
});

describe('a connection to the keeper', () => {
  it('[K82] a program that speaks the protocol itself is held to its owner with every operation', async () => {
    const { inside } = await twoOwners();
    const folder = temporaryFolder();
    const script = join(folder, 'raw.mjs');
    const dist = program('../../dist');
    writeFileSync(
      script,
      `import { openLink } from '${dist}/keeper/link.js';
      import { openHome } from '${dist}/keeper/home.js';
      import { operationNames } from '${dist}/protocol/operation-names.js';
      const link = await openLink(openHome(process.env.HOLDFAST_HOME).socket);
      const refused = [];
      for (const name of operationNames)
        await link[name]('bob', {}).catch((error) => refused.push(error.code));
      const said = [];
      for (const ask of [() => link.stop(), () => link.origin(process.pid),
        () => link.deliver('alice', { op: 'wait', params: {}, render: 'json', to: {} })])
        await ask().catch((error) => said.push(error.code));
      console.log(JSON.stringify({ scope: link.keeper.scope, refused: [...new Set(refused)], count: refused.length - operationNames.length, said }));
      process.exit(0);`,
    );
    const { text } = await inside(`${process.execPath} ${script}`);
    expect(JSON.parse(text)).toEqual({
      scope: { inside: true, owner: 'alice' },
      refused: ['from_inside'],
      count: 0,
      said: ['from_inside', 'from_inside', 'from_inside'],
    });
  });

  it('[K84] one whose opener has ended is closed without an answer: who shares it is not known', async () => {
    const { inside, home } = await twoOwners();
    const { socket } = openHome(home);
    // The child connects and ends while the keeper stands still; the parent, which shares the connection, reads.
    const script = `
import os, signal, socket, sys
s = socket.socket(socket.AF_UNIX)
keeper = int(sys.argv[2])
os.kill(keeper, signal.SIGSTOP)
pid = os.fork()
if pid == 0:
    s.connect(sys.argv[1])
    os._exit(0)
os.waitpid(pid, 0)
os.kill(keeper, signal.SIGCONT)
print('got', len(s.recv(65536)))
`;
    const file = join(temporaryFolder(), 'share.py');
    writeFileSync(file, script);
    const { text } = await inside(`python3 ${file} ${socket} $PPID`);
    expect(text).toBe('got 0\n');
  });
});

describe('the socket of the server', () => {
  it('[G30] a caller from inside has the rights of its owner, and no other', async () => {
    const served = await serve({ keeperArgs: ['--idle-ms', '60000', '--no-cgroups'] });
    onCleanup(() => served.stop());
    const { server, home } = served;
    for (const owner of ['alice', 'bob'])
      await server.host.start(owner, { command: 'sleep 1000', name: `of-${owner}` });
    const socket = openHome(home).serverSocket;
    const link = await server.host.link();
    const ask = async (rest: string): Promise<string> => {
      const { text } = await runInside(
        link,
        home,
        `curl -s --unix-socket ${socket} -w ' %{http_code}' ${rest}`,
      );
      return text;
    };
    const listed = await ask('http://localhost/v1/processes');
    expect(listed).toContain('of-alice');
    expect(listed).not.toContain('of-bob');
    expect(await ask("-H 'Holdfast-Owner: bob' http://localhost/v1/processes")).toMatch(/ 403$/);
    expect(await ask('http://localhost/metrics')).toMatch(/ 403$/);
    expect(await ask('http://localhost/api/v0/processes/list')).toMatch(/ 403$/);
    const stray = await runInside(
      link,
      home,
      `mkfifo f; (setsid env -i PATH="$PATH" sh -c 'while [ "$(ps -o ppid= -p $$ | tr -d " ")" = "$1" ]; do :; done; curl -s --unix-socket ${socket} http://localhost/v1/processes > f' sh $$ &) ; cat f; rm f`,
    );
    expect(JSON.parse(stray.text)).toMatchObject({ error: { code: 'from_inside' } });
  });
});

describe('programs that use Holdfast inside a process', () => {
  it('[K85] the SDK finds a server that the keeper started, and acts for the owner of its process', async () => {
    const { inside, link, home } = await twoOwners();
    // A server outlives its keeper.
    onCleanup(async () => {
      const shutdown = spawn(process.execPath, [main, 'shutdown', '--home', home]);
      await once(shutdown, 'exit');
    });
    const file = join(temporaryFolder(), 'sdk.mjs');
    writeFileSync(
      file,
      `import { connect } from '${program('../../dist/index.js')}';
      const holdfast = await connect();
      const { exitCode } = await holdfast.run('exit 3', { name: 'by-sdk' });
      const seen = (await holdfast.list()).map(({ name }) => name);
      console.log(JSON.stringify({ exitCode, seen }));
      await holdfast.close();`,
    );
    const { text } = await inside(`${process.execPath} ${file}`);
    const { exitCode, seen } = JSON.parse(text) as { exitCode: number; seen: string[] };
    expect([exitCode, seen.includes('by-sdk'), seen.includes('of-bob')]).toEqual([3, true, false]);
    const { processes } = await link.list('*', {});
    expect(processes.find(({ name }) => name === 'by-sdk')?.owner).toBe('alice');
    // From outside, the same server is the admin's.
    const again = await inside(`${process.execPath} ${file}`);
    expect(again.code).toBe(0);
    const outside = spawn(process.execPath, [file], {
      env: { ...process.env, HOLDFAST_HOME: home },
    });
    const [said] = (await once(outside.stdout, 'data')) as [Buffer];
    expect(JSON.parse(said.toString())).toMatchObject({
      seen: expect.arrayContaining(['of-alice', 'of-bob']) as unknown,
    });
  });
});
