// Scoped tokens: their processes reach neither the state directory nor the keeper, and their ceilings hold at every door.

import { spawn } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { Tokens, type TokenPolicy } from '../../src/server/http/tokens.ts';
import { main } from '../support/command-line.ts';
import { inProcess, OWNER, overKeeper, temporaryFolder } from '../support/hosts.ts';

const node = process.execPath;
const means = await (await inProcess()).enforcement(OWNER, {});
const hides = means.hidden.by === 'bubblewrap';
if (!hides) console.warn(`left out: hidden tokens, because ${means.hidden.why}`);

async function cli(
  home: string,
  ...args: string[]
): Promise<{ code: number | null; text: string }> {
  const child = spawn(node, [main, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, HOLDFAST_HOME: home },
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (bytes: Buffer) => (text += bytes.toString()));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, text };
}

/** A keeper with a process of bob, and a token of alice; runs commands as alice. */
async function scoped(policy?: TokenPolicy) {
  const home = temporaryFolder();
  const link = await overKeeper({ folder: home });
  const { token } = new Tokens(home, systemClock).create('alice', undefined, undefined, policy);
  const { process: other } = await link.start('bob', { command: 'sleep 1000', streams: 'pty' });
  const run = async (command: string, more = {}) => {
    const { process } = await link.start('alice', {
      command,
      waitMs: 60_000,
      settleMs: 1000,
      ...more,
    });
    const { text } = await link.text('alice', { id: process.id });
    return { ...process, text };
  };
  return { home, link, token, other, run };
}

describe.skipIf(!hides)('a command of a scoped token', () => {
  it('[CT21] works as before otherwise: files, network, children and a terminal', async () => {
    const { run } = await scoped();
    const cwd = temporaryFolder();
    const { text } = await run(
      'echo 1 > f; cat f; (sleep 0 & wait); grep -c lo: /proc/net/dev; id -u',
      { cwd },
    );
    expect(text).toBe(`1\n1\n${process.getuid?.()}\n`);
    const terminal = await run('test -t 0 && stty size', {
      streams: 'pty',
      size: { cols: 90, rows: 30 },
    });
    expect(terminal.text).toBe('30 90\r\n');
  });

  it('[CT22] an unconfined token says so, and the strictest of two tokens counts', async () => {
    const { home, run } = await scoped({ level: 'none' });
    expect((await run(`ls ${home} | grep -c tokens.json`)).confinement).toEqual({ none: true });
    new Tokens(home, systemClock).create('alice', undefined, undefined, { level: 'hidden' });
    expect((await run('true')).confinement).toEqual({ hidden: { by: 'bubblewrap' } });
  });
});

describe('the ceiling of a token', () => {
  it('[CT23] holds for what asks for nothing, allows less, and refuses more', async () => {
    const { run } = await scoped({ level: 'none', limits: { openFiles: 100, cpuSeconds: 50 } });
    expect((await run('ulimit -n; ulimit -t')).text).toBe('100\n50\n');
    expect((await run('ulimit -n', { limits: { openFiles: 50 } })).text).toBe('50\n');
    await expect(run('true', { limits: { openFiles: 101 } })).rejects.toMatchObject({
      code: 'above_ceiling',
      details: { field: 'limits.openFiles' },
    });
  });

  it('[CT39] outlives its token, revoked or expired, until its owner has another one or is forgotten', async () => {
    const home = temporaryFolder();
    const link = await overKeeper({ folder: home });
    const tokens = new Tokens(home, systemClock);
    const files = async (owner = 'alice'): Promise<string> => {
      const { process } = await link.start(owner, { command: 'ulimit -n', waitMs: 60_000 });
      return (await link.text(owner, { id: process.id })).text.trim();
    };
    const usual = await files();
    const make = (openFiles: number, lifeMs?: number): string =>
      tokens.create('alice', lifeMs, undefined, { level: 'none', limits: { openFiles } }).info.id;
    const first = make(100);
    tokens.revoke(first);
    expect([await files(), await files('alice/chat')]).toEqual(['100', '100']);
    make(200, 0);
    tokens.create('bob', undefined, undefined, { level: 'none' });
    expect(await files()).toBe('200');
    const third = make(300);
    expect(await files()).toBe('300');
    expect(tokens.forget('alice')).toBe(false);
    tokens.revoke(third);
    writeFileSync(join(home, 'tokens.json'), '[{"torn');
    expect(await files()).toBe('300');
    rmSync(join(home, 'tokens.json'));
    make(400, 0);
    expect(await files()).toBe('400');
    expect((await cli(home, 'token', 'forget', 'alice')).text).toContain('are lifted');
    expect(await files()).toBe(usual);
    expect((await cli(home, 'token', 'forget', 'alice')).code).not.toBe(0);
  });

  it.skipIf(!hides)(
    '[CT23] of folders: what lies inside may be asked for, what lies outside may not',
    async () => {
      const folder = temporaryFolder();
      const { run } = await scoped({ level: 'hidden', sandbox: { fs: { write: [folder] } } });
      const write = '(echo x > file) 2>/dev/null && echo written || echo refused';
      expect((await run(write, { cwd: folder })).text).toBe('written\n');
      expect((await run(write, { cwd: temporaryFolder() })).text).toBe('refused\n');
      const readOnly = { cwd: folder, sandbox: { fs: 'read-only' } };
      expect((await run(write, readOnly)).text).toBe('refused\n');
      await expect(
        run('true', { cwd: folder, sandbox: { fs: { write: ['/'] } } }),
      ).rejects.toMatchObject({ code: 'above_ceiling' });
    },
  );
});

describe('the command line', () => {
  it('[CT24] run limits and confines, token create sets ceilings, doctor lists the means', async () => {
    const home = temporaryFolder();
    await overKeeper({ folder: home });
    const limited = await cli(
      home,
      'run',
      '--open-files',
      '64',
      '--file-size',
      '4K',
      'ulimit -n; ulimit -f',
    );
    expect(limited).toEqual({ code: 0, text: '64\n8\n' });
    expect((await cli(home, 'run', '--memory', 'lots', 'true')).text).toContain(
      'is not a size such as',
    );
    const made = await cli(
      home,
      'token',
      'create',
      '--for',
      'carol',
      '--unconfined',
      '--open-files',
      '50',
    );
    expect(made.code).toBe(0);
    expect((await cli(home, 'run', '--owner', 'carol', 'ulimit -n')).text).toContain('50\n');
    expect((await cli(home, 'token', 'list')).text).toContain('unconfined');
    expect((await cli(home, 'doctor')).text).toMatch(/limits +.*cpuSeconds by rlimit/);
  });
});
