// The programs of examples/ do what they say, against a keeper and a server of their own.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { endServer } from '../../src/cli/local/server.ts';
import { root, Running } from '../support/command-line.ts';
import { onCleanup, stopKeeper, temporaryFolder } from '../support/hosts.ts';

function useHome(): (name: string, ...args: string[]) => Running {
  const home = temporaryFolder();
  const state = join(home, '.holdfast');
  onCleanup(async () => {
    await endServer(state);
    await stopKeeper(state);
  });
  const { HOLDFAST_HOME: _home, ...inherited } = process.env;
  const env = { ...inherited, HOME: home, HOLDFAST_HOME: state, HOLDFAST_IDLE: '60s' };
  return (name, ...args) =>
    new Running(args, { env, cwd: home, script: join(root, 'examples', `${name}.mjs`) });
}

describe('the examples', () => {
  it('[DOC6] each is run by a test, and is on the page', () => {
    const names = readdirSync(join(root, 'examples'));
    const page = readFileSync(join(root, 'docs/examples.md'), 'utf8');
    const tests = readFileSync(join(root, 'test/docs/examples.test.ts'), 'utf8');
    expect(names).toHaveLength(5);
    expect(names.filter((name) => !page.includes(`<!-- source: examples/${name} -->`))).toEqual([]);
    expect(names.filter((name) => !tests.includes(`'${name.replace('.mjs', '')}'`))).toEqual([]);
  });

  it('[DOC6] a build, a dev server with its tests, and an agent loop end as they say', async () => {
    const run = useHome();
    const build = await run('wait-for-build').ended;
    expect(build).toMatchObject({ code: 0, stderr: '' });
    expect(build.stdout).toBe('first: warning: unused x\nended with 0, 3 lines\n');
    expect(await run('wait-for-build', 'exit 4').ended).toMatchObject({ code: 4 });
    const tests = await run('dev-server-and-tests').ended;
    expect(tests.stdout).toBe('ok 1 says hello\ntests ended with 0; 0 processes are left\n');
    expect(tests.code).toBe(0);
    const loop = await run('agent-loop').ended;
    expect(loop).toMatchObject({ code: 0, stderr: '' });
    expect(loop.stdout).toMatch(/\nOne test fails: not ok 501 login\n$/);
  });

  it('[DOC6] a REPL answers on its screen', async () => {
    const run = useHome();
    const picture = join(temporaryFolder(), 'screen.png');
    const { code, stdout, stderr } = await run('repl-in-a-terminal', picture).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('\n> [3, 1, 2].toSorted().join("-")\n\'1-2-3\'\n');
    expect(readFileSync(picture).subarray(1, 4).toString()).toBe('PNG');
  });

  it('[DOC6] a step of CI that is killed goes on, and is not done twice', async () => {
    const run = useHome();
    const folder = temporaryFolder();
    const command = `echo begun; echo once >> ${folder}/count; until [ -e ${folder}/go ]; do sleep 0.02; done; echo done >&2; exit 4`;
    const first = run('ci-step', 'build-1', command);
    await first.until('stdout', 'begun\n');
    first.child.kill('SIGKILL');
    await first.ended;
    const second = run('ci-step', 'build-1', command);
    await second.until('stdout', 'begun\n');
    writeFileSync(join(folder, 'go'), '');
    expect(await second.ended).toMatchObject({ code: 4, stdout: 'begun\n', stderr: 'done\n' });
    expect(readFileSync(join(folder, 'count'), 'utf8')).toBe('once\n');
  });
});
