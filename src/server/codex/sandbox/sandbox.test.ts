import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { onCleanup, temporaryFolder } from '../../../../test/support/hosts.ts';
import { RpcError } from '../rpc.ts';
import { findBubblewrap, wrapInSandbox, type SandboxTools } from './sandbox.ts';

const uri = (path: string): string => pathToFileURL(path).href;
const special = (kind: string, more = {}): object => ({
  type: 'special',
  value: { kind, ...more },
});
const env = { PATH: '/usr/bin:/bin' };

const find = findBubblewrap(process.env['BUBBLEWRAP']);
const installed = (await find()) !== undefined;

/** As if bubblewrap were at /usr/bin/bwrap, for looking at command lines. */
const imagined: SandboxTools = {
  hidden: [],
  tmpdir: undefined,
  bubblewrap: async () => '/usr/bin/bwrap',
};

function managed(entries: object[], folder: string, network = 'restricted'): object {
  return {
    permissions: {
      type: 'managed',
      file_system: { type: 'restricted', entries },
      network,
    },
    policyContext: { cwd: uri(folder), workspaceRoots: [uri(folder)] },
    windowsSandboxLevel: 'disabled',
  };
}

const workspaceWrite = [
  { path: special('root'), access: 'read' },
  { path: special('project_roots'), access: 'write' },
];

async function argsOf(sandbox: unknown, tools = imagined): Promise<string> {
  const command = await wrapInSandbox({ argv: ['cmd', 'a b'], env }, sandbox, tools);
  return command?.argv.join(' ') ?? 'refused';
}

async function problem(sandbox: unknown): Promise<unknown> {
  try {
    return await wrapInSandbox({ argv: ['cmd'], env }, sandbox, imagined);
  } catch (error) {
    return error instanceof RpcError ? [error.code, error.message] : error;
  }
}

describe('the command line', () => {
  it('[CF17] a workspace is mounted writable over a read-only disk, without network, its settings closed', async () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, '.git'));
    const args = await argsOf(managed(workspaceWrite, folder));
    expect(args).toBe(
      '/bin/sh -c trap "" INT; exec "$@" sandbox /usr/bin/bwrap --die-with-parent --unshare-user ' +
        '--unshare-pid --unshare-ipc --unshare-net --cap-drop ALL --ro-bind / / --dev /dev --proc /proc --ro-bind-try /proc/sys /proc/sys ' +
        '--ro-bind-try /proc/sysrq-trigger /proc/sysrq-trigger --ro-bind-try /proc/irq /proc/irq --ro-bind-try /proc/bus /proc/bus ' +
        `--bind ${folder} ${folder} --ro-bind ${folder}/.git ${folder}/.git ` +
        '-- /usr/bin/env --default-signal=INT -- cmd a b',
    );
    expect(await argsOf(managed(workspaceWrite, folder, 'enabled'))).not.toContain('--unshare-net');
  });

  it('[CF17] what is denied is covered, and so are our own sockets, whatever the policy says', async () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, 'secret'));
    writeFileSync(join(folder, 'file'), '');
    const entries = [
      ...workspaceWrite,
      { path: special('project_roots', { subpath: 'secret' }), access: 'deny' },
      { path: { type: 'path', path: uri(join(folder, 'file')) }, access: 'none' },
    ];
    const home = temporaryFolder();
    const args = await argsOf(managed(entries, folder), { ...imagined, hidden: [home] });
    expect(args).toContain(`--ro-bind /dev/null ${folder}/file`);
    for (const path of [join(folder, 'secret'), home])
      expect(args).toContain(`--perms 000 --tmpfs ${path} --remount-ro ${path}`);
    const open = {
      permissions: {
        type: 'managed',
        file_system: { type: 'unrestricted' },
        network: 'restricted',
      },
      windowsSandboxLevel: 'disabled',
    };
    const unrestricted = await argsOf(open, { ...imagined, hidden: [home] });
    expect(unrestricted).toContain('--unshare-net');
    expect(unrestricted).toContain('--bind / /');
    expect(unrestricted).toContain(`--tmpfs ${home}`);
  });

  it('[CF17] a name for the program is given to the program, not to what wraps it', async () => {
    const command = await wrapInSandbox(
      { argv: ['cmd'], env, arg0: 'other' },
      managed(workspaceWrite, temporaryFolder()),
      imagined,
    );
    expect(command?.argv.slice(-4)).toEqual(['--argv0', 'other', '--', 'cmd']);
  });

  it('[CF17] what steers a loader or a shell reaches only the command (37)', async () => {
    const hostile = { ...env, LD_PRELOAD: '/x.so', BASH_ENV: '/x.sh', PLAIN: '1' };
    const command = await wrapInSandbox(
      { argv: ['cmd'], env: hostile },
      managed(workspaceWrite, temporaryFolder()),
      imagined,
    );
    expect(command?.env).toEqual({ ...env, PLAIN: '1' });
    expect(command?.argv.join(' ')).toContain('--setenv LD_PRELOAD /x.so --setenv BASH_ENV /x.sh');
  });

  it('[CF17] nothing to enforce is no sandbox, and says so', async () => {
    const off = { permissions: { type: 'disabled' }, windowsSandboxLevel: 'disabled' };
    const open = {
      permissions: { type: 'managed', file_system: { type: 'unrestricted' }, network: 'enabled' },
      windowsSandboxLevel: 'disabled',
    };
    for (const sandbox of [null, undefined, off, open])
      expect(await wrapInSandbox({ argv: ['cmd'], env }, sandbox)).toEqual({
        argv: ['cmd'],
        sandboxType: 'none',
      });
  });

  it('[CF17] what cannot be enforced or expressed is refused, never run without', async () => {
    const folder = temporaryFolder();
    const policy = managed(workspaceWrite, folder);
    const nowhere = { ...imagined, bubblewrap: async () => undefined };
    expect(await argsOf(policy, nowhere)).toBe('refused');
    expect(await wrapInSandbox(['cmd'], policy)).toBeUndefined();
    expect(await wrapInSandbox({ argv: ['cmd'], env }, policy)).toBeUndefined();
    const external = {
      permissions: { type: 'external', network: 'enabled' },
      windowsSandboxLevel: 'disabled',
    };
    expect(await argsOf(external)).toBe('refused');
    const refusal = [-32602, 'sandbox intent cannot be enforced on this executor'];
    const missing = { type: 'path', path: uri(join(folder, 'later')) };
    for (const entry of [
      { path: { type: 'glob_pattern', pattern: '/x/*' }, access: 'deny' },
      { path: special('unknown'), access: 'read' },
      { path: special('project_roots', { subpath: '../up' }), access: 'write' },
      { path: missing, access: 'deny' },
      { path: missing, access: 'read' },
    ])
      expect(await problem(managed([...workspaceWrite, entry], folder))).toEqual(refusal);
    const skipped = { path: missing, access: 'read', missing_path_behavior: 'skip' };
    expect(await argsOf(managed([...workspaceWrite, skipped], folder))).not.toContain('later');
    expect(await problem({ permissions: { type: 'zzz' } })).toEqual([
      -32602,
      'unknown variant `zzz`, expected one of `managed`, `disabled`, `external`',
    ]);
  });

  it("[CF17] what would open our folders again, or the machine's /proc and /sys, is refused", async () => {
    const folder = temporaryFolder();
    const home = temporaryFolder();
    mkdirSync(join(home, 'journals'));
    symlinkSync(join(home, 'journals'), join(folder, 'link'));
    const tools = { ...imagined, hidden: [home] };
    const argsWith = (path: string, access: string): Promise<string> => {
      const entry = { path: { type: 'path', path: uri(path) }, access };
      return argsOf(managed([...workspaceWrite, entry], folder), tools);
    };
    const refusal = { code: -32602 };
    for (const path of [home, join(home, 'journals'), join(home, 'later'), join(folder, 'link')])
      for (const access of ['read', 'write'])
        await expect(argsWith(path, access)).rejects.toMatchObject(refusal);
    for (const path of ['/proc', '/proc/sys', '/sys', '/sys/fs/cgroup', '/dev'])
      await expect(argsWith(path, 'write')).rejects.toMatchObject(refusal);
    expect(await argsWith('/proc', 'read')).not.toMatch(/bind \/proc \/proc/);
    expect(await argsWith('/', 'write')).toContain('--bind / / --ro-bind-try /sys /sys --dev');
    // The folders are known by what they are, not by a link to them.
    const alias = join(temporaryFolder(), 'home');
    symlinkSync(home, alias);
    const args = await argsOf(managed(workspaceWrite, folder), { ...imagined, hidden: [alias] });
    expect(args).toContain(`--tmpfs ${home}`);
  });

  it('[CF17] a bubblewrap that does not work here counts as none', async () => {
    const fake = join(temporaryFolder(), 'bwrap');
    writeFileSync(fake, '#!/bin/sh\nexit 1\n', { mode: 0o755 });
    expect(await findBubblewrap(fake)()).toBeUndefined();
    expect(await findBubblewrap('/nonexistent/bwrap')()).toBeUndefined();
  });
});

/** With a real bubblewrap: where it is installed, or where BUBBLEWRAP says. */
describe.skipIf(!installed)('a sandboxed command', () => {
  function workspace(): { folder: string; home: string; tools: SandboxTools } {
    const folder = temporaryFolder();
    const home = temporaryFolder();
    mkdirSync(join(folder, 'd/.git'), { recursive: true });
    mkdirSync(join(folder, 'out'));
    writeFileSync(join(folder, 'out/s'), 'outside');
    symlinkSync('../out', join(folder, 'd/lo'));
    writeFileSync(join(home, 'token'), 'secret');
    return { folder, home, tools: { hidden: [home], tmpdir: undefined, bubblewrap: find } };
  }

  async function run(
    { folder, tools }: { folder: string; tools: SandboxTools },
    script: string,
    entries: object[] = workspaceWrite,
  ): Promise<string> {
    const d = join(folder, 'd');
    const command = await wrapInSandbox(
      { argv: ['sh', '-c', script], env },
      managed(entries, d),
      tools,
    );
    const [first = '', ...rest] = command?.argv ?? [];
    expect(command?.sandboxType).toBe('linuxSeccomp');
    return execFileSync(first, rest, { cwd: d, env: command?.env, encoding: 'utf8' });
  }

  it('[CF18] writes in its workspace and nowhere else, not even by links', async () => {
    const made = workspace();
    const { folder } = made;
    const script =
      'echo in > a; for f in ../out/n lo/n .git/n /etc/holdfast-n; do (echo x > $f) 2>/dev/null && echo wrote $f; done; cat lo/s; pwd';
    expect(await run(made, script)).toBe(`outside${join(folder, 'd')}\n`);
    expect(readFileSync(join(folder, 'd/a'), 'utf8')).toBe('in\n');
    for (const name of ['out/n', 'd/.git/n']) expect(existsSync(join(folder, name))).toBe(false);
  });

  it('[CF18] sees neither our secrets nor our sockets, no network, no other process, no capability', async () => {
    const made = workspace();
    const socket = createServer();
    await new Promise<void>((resolve) => {
      socket.listen(join(made.home, 'server.sock'), resolve);
    });
    onCleanup(() => void socket.close());
    const { home } = made;
    const script = [
      `cat ${home}/token 2>/dev/null && echo read`,
      `ls ${home}/server.sock 2>/dev/null`,
      `test -e /proc/${process.pid}/environ && grep -q node /proc/${process.pid}/comm && echo process`,
      'grep -c : /proc/net/dev',
      'grep CapEff /proc/self/status',
    ].join('; ');
    // Only the loopback device of a network of its own.
    expect(await run(made, script)).toBe('1\nCapEff:\t0000000000000000\n');
  });

  it('[CF18] with little of the disk a command still runs, and the rest is not there', async () => {
    const made = workspace();
    const entries = [
      { path: special('minimal'), access: 'read' },
      { path: special('project_roots'), access: 'write' },
    ];
    const script =
      'cat lo/s 2>/dev/null || echo none; (echo x > /n) 2>/dev/null || echo closed; echo ok > b; cat b';
    expect(await run(made, script, entries)).toBe('none\nclosed\nok\n');
  });

  it('[CF18] what is denied cannot be read', async () => {
    const made = workspace();
    const out = join(made.folder, 'out');
    const entries = [...workspaceWrite, { path: { type: 'path', path: uri(out) }, access: 'deny' }];
    expect(await run(made, 'cat lo/s 2>&1 | grep -c denied', entries)).toBe('1\n');
  });

  it('[CF18] an interrupt reaches the command, which may do something about it', async () => {
    const made = workspace();
    const d = join(made.folder, 'd');
    const script = 'trap "echo signal:2; exit 7" INT; echo on; while :; do read -r _ < hold; done';
    makePipe(join(d, 'hold'));
    const command = await wrapInSandbox(
      { argv: ['sh', '-c', script], env },
      managed(workspaceWrite, d),
      made.tools,
    );
    const [first = '', ...rest] = command?.argv ?? [];
    const child = spawn(first, rest, { cwd: d, env: command?.env, detached: true });
    let output = '';
    const on = new Promise<void>((resolve) => {
      child.stdout.on('data', (chunk: Buffer) => {
        output += chunk.toString();
        if (output.includes('on')) resolve();
      });
    });
    await on;
    const ended = new Promise((resolve) => {
      child.once('close', resolve);
    });
    process.kill(-(child.pid ?? 0), 'SIGINT');
    expect(await ended).toBe(7);
    expect(output).toBe('on\nsignal:2\n');
  });
});

function makePipe(path: string): void {
  execFileSync('sh', ['-c', 'mkfifo "$0"', path]);
}
