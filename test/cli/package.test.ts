// The package as npm packs it, with its dependencies and nothing else of the clone beside it.

import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { firstLine, root, Running, type Ended } from '../support/command-line.ts';
import { isSlowRun } from '../support/slow.ts';

interface Packed {
  readonly filename: string;
  readonly size: number;
  readonly files: readonly { readonly path: string }[];
}

/** A third more than it is: a file that does not belong there is noticed. */
const MOST_BYTES = 4_800_000;

const folder = mkdtempSync(join(tmpdir(), 'holdfast-package-'));
const installed = join(folder, 'node_modules', 'holdfast');
let packed: Packed;

beforeAll(() => {
  // The clone is built already; building it again would take the files from under other tests.
  const words = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const text = execFileSync('npm', words, { cwd: root, encoding: 'utf8', stdio: 'pipe' });
  [packed] = JSON.parse(text) as [Packed];
  mkdirSync(installed, { recursive: true });
  const file = join(folder, packed.filename);
  execFileSync('tar', ['-xzf', file, '-C', installed, '--strip-components=1']);
  const { dependencies } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  for (const name of Object.keys(dependencies)) {
    const link = join(folder, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(root, 'node_modules', name), link);
  }
});

afterAll(() => rm(folder, { recursive: true }));

describe('the packed file', () => {
  const env = { HOLDFAST_HOME: join(folder, 'home'), HOLDFAST_IDLE: '1m', HOME: folder };
  const run = (...args: string[]): Promise<Ended> =>
    new Running(args, { env, cwd: folder, script: join(installed, 'dist', 'cli', 'main.js') })
      .ended;

  it('[U9] has the programs, the page, fonts and skills, and no source maps, stamps or tests', () => {
    const paths = packed.files.map(({ path }) => path);
    for (const needed of ['cli/main.js', 'cli/agent-tty.js', 'keeper/main.js', 'index.d.ts'])
      expect(paths).toContain(`dist/${needed}`);
    expect(paths.filter((path) => path.startsWith('dist/dashboard/'))).not.toEqual([]);
    expect(paths.filter((path) => path.startsWith('fonts/'))).not.toEqual([]);
    const needless = /\.map$|\.test\.|holdfast-built|^(?:src|test|bench|scripts|docs)\//;
    expect(paths.filter((path) => needless.test(path))).toEqual([]);
    expect(packed.size).toBeLessThan(MOST_BYTES);
  });

  it('[U9] works with its dependencies alone: run, search, picture, MCP configuration, page, shutdown', async () => {
    expect(await run('run', 'echo packed; exit 3')).toMatchObject({ code: 3, stdout: 'packed\n' });
    await run('run', '--name', 'lines', 'seq 100');
    expect((await run('search', 'lines', '^42$')).stdout).toContain('42');
    const opened = await run('tty', 'create', '--json', '--', 'sh');
    const { sessionId } = (JSON.parse(opened.stdout) as { result: { sessionId: string } }).result;
    const taken = await run('tty', 'screenshot', sessionId, '--json');
    const { artifactPath } = (JSON.parse(taken.stdout) as { result: { artifactPath: string } })
      .result;
    expect(statSync(artifactPath).size).toBeGreaterThan(0);
    expect((await run('mcp', '--print-config', 'cursor')).stdout).toContain('"holdfast"');
    expect((await run('dashboard', '--print')).stdout).toContain('http://127.0.0.1:');
    expect(await run('shutdown')).toMatchObject({ code: 0 });
  });
});

/** Our dependencies, with theirs, each packed as a registry has it. */
function packDependencies(into: string): Record<string, string> {
  const words = ['ls', '--omit=dev', '--all', '--parseable'];
  const listed = execFileSync('npm', words, { cwd: root, encoding: 'utf8', stdio: 'pipe' });
  const folders = listed.split('\n').filter((line) => line.includes('/node_modules/'));
  return Object.fromEntries(
    folders.map((path) => {
      const name = path.replace(/.*\/node_modules\//, '');
      const file = join(into, `${name.replaceAll(/[/@]/g, '_')}.tgz`);
      const how = ['--exclude=node_modules', '--transform', 's#^\\./#package/#'];
      execFileSync('tar', ['-czf', file, ...how, '-C', path, '.']);
      return [name, `file:${file}`];
    }),
  );
}

describe.skipIf(!isSlowRun)('installed by npm into an empty folder, without a network', () => {
  const users: [string, string[]][] = [
    ['this user', []],
    ['nobody', ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--']],
  ];
  it.each(users)(
    '[U10] works for %s: six commands, and npx holdfast mcp',
    async (_, as) => {
      if (as.length > 0 && process.getuid?.() !== 0) return;
      const place = mkdtempSync(join(tmpdir(), 'holdfast-installed-'));
      const given = packDependencies(place);
      const names = Object.keys(given);
      copyFileSync(join(folder, packed.filename), join(place, packed.filename));
      const project = {
        private: true,
        dependencies: { holdfast: `file:${join(place, packed.filename)}`, ...given },
        overrides: Object.fromEntries(names.map((name) => [name, `$${name}`])),
      };
      writeFileSync(join(place, 'package.json'), JSON.stringify(project));
      execFileSync('chmod', ['-R', 'a+rX', place]);
      if (as.length > 0) chownSync(place, 65_534, 65_534);
      const env = { PATH: process.env['PATH'], HOME: place, HOLDFAST_IDLE: '1m' };
      const run = (...words: string[]) => {
        const [file = '', ...args] = [...as, ...words];
        return spawnSync(file, args, { cwd: place, env, encoding: 'utf8' });
      };
      const install = run('npm', 'install', '--offline', '--ignore-scripts', '--no-audit');
      expect([install.status, install.stderr]).toEqual([0, expect.any(String)]);
      const holdfast = (...words: string[]) => run('npx', '--offline', 'holdfast', ...words);
      expect(holdfast('run', 'echo first; exit 3')).toMatchObject({ status: 3, stdout: 'first\n' });
      expect(holdfast('run', '--background', '--name', 'kept', 'echo kept').status).toBe(0);
      expect(holdfast('wait', 'kept').status).toBe(0);
      expect(holdfast('logs', 'kept').stdout).toBe('kept\n');
      expect(holdfast('ps', '--all').stdout).toContain('kept');
      const [file, ...args] = [...as, 'npx', '--offline', 'holdfast', 'mcp'];
      const mcp = spawn(file, args, { cwd: place, env, stdio: ['pipe', 'pipe', 'ignore'] });
      mcp.stdin.write(hello);
      expect(await firstLine(mcp.stdout)).toContain('"serverInfo"');
      mcp.stdin.end();
      await once(mcp, 'close');
      expect(holdfast('shutdown').status).toBe(0);
      await rm(place, { recursive: true });
    },
    600_000,
  );
});

/** The first message of an MCP client. */
const hello = `${JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
  },
})}\n`;
