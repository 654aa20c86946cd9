// The process service with the unmodified E2B SDK.

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Sandbox } from 'e2b';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { problem, serveE2b, type E2bServed } from '../support/e2b-client.ts';
import { gate } from '../support/hosts.ts';
import { sized } from '../support/slow.ts';

let served: E2bServed;
let sandbox: Sandbox;
let home: string;

beforeAll(async () => {
  served = await serveE2b();
  // The folder of the first test is removed with it.
  home = mkdtempSync(join(tmpdir(), 'holdfast-e2b-'));
  process.env['HOME'] = home;
  sandbox = await served.create({ envs: { OF_SANDBOX: 'yes' } });
});

afterAll(async () => {
  await served.stop();
  rmSync(home, { recursive: true, force: true });
});

function isAlive(pid: number): boolean {
  return spawnSync('kill', ['-0', String(pid)]).status === 0;
}

describe('a command', () => {
  it('[E201] gives both streams, exactly, and its exit code', async () => {
    const both = await sandbox.commands.run('echo hi; echo err >&2');
    expect(both).toMatchObject({ exitCode: 0, stdout: 'hi\n', stderr: 'err\n' });
    expect(both.error).toBeUndefined();
    const open = await sandbox.commands.run('printf "a\\nb"');
    expect(open.stdout).toBe('a\nb');
    const split = await sandbox.commands.run("printf '\\303'; sleep 0.05; printf '\\244'");
    expect(split.stdout).toBe('ä');
  });

  it('[E202] that fails or is killed is an error with its status', async () => {
    expect(await problem(sandbox.commands.run('exit 3'))).toEqual({
      name: 'CommandExitError',
      message: 'exit status 3',
      exitCode: 3,
    });
    expect(await problem(sandbox.commands.run('kill -9 $$'))).toEqual({
      name: 'CommandExitError',
      message: 'signal: killed',
      exitCode: -1,
    });
  });

  it('[E203] has the variables of the call and of its sandbox, and few others', async () => {
    const { stdout } = await sandbox.commands.run('env', { envs: { OF_CALL: 'too' } });
    const names = stdout
      .trim()
      .split('\n')
      .map((line) => line.split('=')[0]);
    const known = 'PATH HOME USER LOGNAME OF_SANDBOX OF_CALL HOLDFAST_PROCESS PWD SHLVL _ OLDPWD';
    expect(names).toEqual(expect.arrayContaining(['OF_SANDBOX', 'OF_CALL', 'PATH', 'HOME']));
    // Whatever else is there was set by the machine's own login files.
    const clean = spawnSync('bash', ['-l', '-c', 'env'], { env: { HOME: home }, encoding: 'utf8' });
    const byLogin = clean.stdout.split('\n').map((line) => line.split('=')[0]);
    expect(
      names.filter((name) => !known.split(' ').includes(name ?? '') && !byLogin.includes(name)),
    ).toEqual([]);
    expect((await sandbox.commands.run('echo "[$OF_CALL]"')).stdout).toBe('[]\n');
  });

  it('[E204] runs in the home directory, or where the call says', async () => {
    mkdirSync(join(home, 'rel'), { recursive: true });
    const at = async (cwd?: string): Promise<string> =>
      (await sandbox.commands.run('pwd', cwd === undefined ? {} : { cwd })).stdout.trim();
    expect([await at(), await at('/tmp'), await at('rel'), await at('~')]).toEqual([
      home,
      '/tmp',
      join(home, 'rel'),
      home,
    ]);
    const { name, message } = await problem(sandbox.commands.run('true', { cwd: '/nope' }));
    expect(name).toBe('InvalidArgumentError');
    expect(message).toContain("cwd '/nope' does not exist");
    expect((await problem(sandbox.commands.run('true', { cwd: '~bob' }))).name).toBe(
      'InvalidArgumentError',
    );
  });

  it('[E205] tells its output in order, before it is over; in the background, too', async () => {
    const seen: string[] = [];
    const handle = await sandbox.commands.run('for i in 1 2 3; do echo $i; echo $i >&2; done', {
      background: true,
      onStdout: (text) => void seen.push(text),
    });
    const { stdout, stderr } = await handle.wait();
    expect(seen.join('')).toBe('1\n2\n3\n');
    expect([stdout, stderr]).toEqual(['1\n2\n3\n', '1\n2\n3\n']);
  });

  it('[E206] reads what is sent to it, to the end; without stdin it says so', async () => {
    const cat = await sandbox.commands.run('cat', { background: true, stdin: true });
    await sandbox.commands.sendStdin(cat.pid, 'one ');
    await sandbox.commands.sendStdin(cat.pid, '');
    await sandbox.commands.sendStdin(cat.pid, 'two');
    await sandbox.commands.closeStdin(cat.pid);
    await sandbox.commands.closeStdin(cat.pid).catch((error: unknown) => {
      // It may have ended already.
      expect(String(error)).toMatch(/^NotFoundError/);
    });
    expect(await cat.wait()).toMatchObject({ exitCode: 0, stdout: 'one two' });
    const { wait, open } = gate();
    const deaf = await sandbox.commands.run(wait, { background: true });
    const { message } = await problem(sandbox.commands.sendStdin(deaf.pid, 'x'));
    expect(message).toContain('stdin not enabled or closed');
    open();
    await deaf.wait();
  });

  it('[E206] loses nothing of much input', async () => {
    const text = 'x'.repeat(sized(2, 10) * 1024 * 1024);
    const count = await sandbox.commands.run('wc -c', { background: true, stdin: true });
    await sandbox.commands.sendStdin(count.pid, text);
    await sandbox.commands.closeStdin(count.pid);
    expect((await count.wait()).stdout.trim()).toBe(String(text.length));
  });

  it('[E207] is listed while it runs, and no longer', async () => {
    const { wait, open } = gate();
    const handle = await sandbox.commands.run(wait, { background: true, cwd: '/tmp' });
    const listed = await sandbox.commands.list();
    expect(listed).toMatchObject([
      { pid: handle.pid, cmd: '/bin/bash', args: ['-l', '-c', wait], cwd: '/tmp' },
    ]);
    open();
    await handle.wait();
    expect(await sandbox.commands.list()).toEqual([]);
  });

  it('[E208] is killed with everything it started', async () => {
    // Its root does not wait for the child, which is killed first: it would end by itself.
    const handle = await sandbox.commands.run('setsid sleep 600 & echo $!; exec sleep 600', {
      background: true,
    });
    const printed = new Promise<string>((resolve) => {
      void sandbox.commands.connect(handle.pid, { onStdout: (text) => resolve(text) });
    });
    const child = Number((await printed).trim());
    expect(await sandbox.commands.kill(handle.pid)).toBe(true);
    expect([isAlive(handle.pid), isAlive(child)]).toEqual([false, false]);
    expect(await sandbox.commands.kill(handle.pid)).toBe(false);
    expect(await sandbox.commands.kill(999_999)).toBe(false);
    expect((await problem(handle.wait())).message).toBe('signal: killed');
  });

  it('[E209] can be connected to at any time: all output, then what follows, then its end', async () => {
    const { wait, open } = gate();
    const handle = await sandbox.commands.run(`echo before; ${wait}; echo after; exit 4`, {
      background: true,
    });
    await handle.disconnect();
    const two = await Promise.all([1, 2].map(() => sandbox.commands.connect(handle.pid)));
    open();
    for (const each of two) {
      expect((await problem(each.wait())).exitCode).toBe(4);
      expect(each.stdout).toBe('before\nafter\n');
    }
    const late = await sandbox.commands.connect(handle.pid);
    expect((await problem(late.wait())).exitCode).toBe(4);
    expect(late.stdout).toBe('before\nafter\n');
    const { name, message } = await problem(sandbox.commands.connect(999_999));
    expect([name, message]).toEqual([
      'NotFoundError',
      '[not_found] process with pid 999999 not found',
    ]);
  });

  it('[E210] is ended by its timeout, which counts from its start', async () => {
    const handle = await sandbox.commands.run('exec sleep 600', {
      background: true,
      timeoutMs: 300,
    });
    expect((await problem(handle.wait())).name).toBe('TimeoutError');
    const again = await sandbox.commands.connect(handle.pid);
    expect((await problem(again.wait())).name).toBe('TimeoutError');
    expect(isAlive(handle.pid)).toBe(false);
  });

  it('[E211] is over when its shell is, whatever holds its pipes', async () => {
    expect((await sandbox.commands.run('sleep 600 & echo x')).stdout).toBe('x\n');
  });

  it('[E212] of much output gives every byte', async () => {
    const lines = sized(200_000, 5_000_000);
    const { stdout } = await sandbox.commands.run(`seq ${lines}`, { timeoutMs: 0 });
    expect(stdout.length).toBe(
      Array.from({ length: lines }, (_, at) => String(at + 1).length + 1).reduce(
        (a, b) => a + b,
        0,
      ),
    );
    expect(stdout.endsWith(`\n${lines}\n`)).toBe(true);
  });
});

describe('a terminal', () => {
  it('[E213] has the size it was given and takes another; its past is replayed', async () => {
    let shown = '';
    const terminal = await sandbox.pty.create({
      cols: 80,
      rows: 24,
      timeoutMs: 0,
      onData: (bytes) => void (shown += Buffer.from(bytes).toString()),
    });
    const until = async (text: string): Promise<void> => {
      while (!shown.includes(text)) await new Promise((resolve) => setImmediate(resolve));
    };
    const type = (text: string): Promise<void> =>
      sandbox.pty.sendInput(terminal.pid, Buffer.from(text));
    await type('stty size | tr " " x\n');
    await until('24x80');
    await sandbox.pty.resize(terminal.pid, { cols: 100, rows: 30 });
    await type('stty size | tr " " x\n');
    await until('30x100');
    const refused = await problem(sandbox.commands.sendStdin(terminal.pid, 'x'));
    expect(refused.message).toContain('input should be written to the pty');
    let replayed = '';
    const again = await sandbox.pty.connect(terminal.pid, {
      onData: (bytes) => void (replayed += Buffer.from(bytes).toString()),
    });
    // Its own words: a shell that is about to become a program can lose a Ctrl-C.
    await type('exec tail -n +1 -f /etc/passwd\n');
    await until('root:');
    await type('\u0003');
    expect((await problem(again.wait())).message).toBe('signal: interrupt');
    expect(replayed).toContain('24x80');
    expect(replayed).toContain('30x100');
    expect((await problem(terminal.wait())).exitCode).toBe(-1);
  });

  it('[E213] is killed', async () => {
    const terminal = await sandbox.pty.create({ cols: 80, rows: 24, onData: () => undefined });
    expect(await sandbox.pty.kill(terminal.pid)).toBe(true);
    expect(await sandbox.pty.kill(terminal.pid)).toBe(false);
    expect((await problem(terminal.wait())).message).toBe('signal: killed');
  });
});
