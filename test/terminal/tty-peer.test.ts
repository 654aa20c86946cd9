// What scripts for agent-tty rely on beyond the commands themselves: homes, flags, shapes, words; and where `holdfast tty`
// differs from it on purpose.
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { serverAnswers } from '../../src/cli/tty/server-answers.ts';
import { connectKeeper } from '../../src/keeper/connect.ts';
import { Screens } from '../../src/screen/view/screens.ts';
import { openSession } from '../../src/terminals/terminal-session.ts';
import { Place } from '../support/command-line.ts';
import { stopKeeper } from '../support/hosts.ts';
import { main, runTty, shim, type Reported } from '../support/tty-commands.ts';

let base: string;
let home: string;

beforeAll(() => {
  base = mkdtempSync(join(tmpdir(), 'holdfast-peer-'));
  // As most scripts make theirs.
  chmodSync(base, 0o755);
  home = join(base, 'holdfast');
});
afterAll(async () => {
  await stopKeeper(home);
  rmSync(base, { recursive: true, force: true });
});

const peer = (...args: string[]): Promise<Reported> =>
  runTty(shim, args, { AGENT_TTY_HOME: base, HOME: base, SHELL: '/bin/bash' });
const ours = (...args: string[]): Promise<Reported> =>
  runTty(main, ['tty', ...args], { HOLDFAST_HOME: home, HOME: base, SHELL: '/bin/bash' });
const result = async (reported: Promise<Reported>): Promise<Record<string, unknown>> => {
  const { envelope, stderr } = await reported;
  if (!envelope?.ok) throw new Error(JSON.stringify(envelope) + stderr);
  return envelope.result;
};
const create = async (...args: string[]): Promise<string> =>
  String((await result(peer('create', '--json', ...args)))['sessionId']);

describe('agent-tty', () => {
  it('[TM106] takes a home that others may look into, and locks a folder inside', async () => {
    await create();
    expect(statSync(home).mode & 0o777).toBe(0o700);
    expect(statSync(base).mode & 0o777).toBe(0o755);
  });

  it('[TM107] reads no option after "--"', async () => {
    const away = join(base, 'away');
    const id = await create('--', 'sleep', '300', '--home', away, '--help', '--json');
    expect(existsSync(away)).toBe(false);
    const { session } = await result(peer('inspect', id, '--json'));
    expect(session).toMatchObject({
      command: ['sleep', '300', '--home', away, '--help', '--json'],
      shell: 'sleep',
    });
  });

  it('[TM108] checks the options of every command first, and shows help for any command', async () => {
    for (const flags of [
      ['--log-level', 'loud'],
      ['--renderer', 'none'],
      ['--timeout-ms', 'soon'],
      ['--home', 'relative'],
    ]) {
      const reported = await peer('list', '--json', ...flags);
      expect([reported.code, reported.envelope.command, reported.envelope.error.code]).toEqual([
        2,
        'agent-tty',
        'INVALID_INPUT',
      ]);
    }
    expect((await peer()).code).toBe(2);
    expect(await peer('create', '-h')).toMatchObject({ code: 0 });
    expect(await peer('record', '--help')).toMatchObject({ code: 0 });
    expect(await peer('d', '--help')).toMatchObject({ code: 0 });
    expect((await peer('ls', '--help')).stdout).toContain('List sessions');
    expect((await peer('skill')).stderr).toContain("unknown command 'skill'");
    expect((await peer('version')).stdout).toContain('agent-tty');
    expect(await result(peer('version', '--json'))).toHaveProperty('capabilities');
  });

  it('[TM109] ends run with 0 whatever its command says; holdfast tty ends as its command ended', async () => {
    const id = await create();
    expect(await peer('run', id, '(exit 3)', '--json')).toMatchObject({
      code: 0,
      envelope: { result: { exitCode: 3 } },
    });
    expect((await ours('run', id, '(exit 3)')).code).toBe(3);
    const late = await ours('run', id, 'sleep 300', '--timeout', '1s');
    expect(late).toMatchObject({
      code: 123,
      stderr: expect.stringContaining('it goes on') as string,
    });
    const behind = await ours('run', id, 'echo never', '--timeout', '200');
    expect(behind).toMatchObject({
      code: 123,
      stderr: expect.stringContaining('busy with sleep 300') as string,
    });
    expect(await peer('run', id, 'true', '--timeout', '0', '--json')).toMatchObject({
      code: 2,
      envelope: { error: { code: 'INVALID_DURATION' } },
    });
    expect(await result(peer('run', id, 'x', '--no-wait', '--json'))).toEqual({
      accepted: true,
      seq: expect.any(Number) as number,
    });
  });

  it('[TM133] holdfast tty run says 0 only of a command that is known to have ended so', async () => {
    const id = await create('--', '/bin/bash', '--norc');
    expect((await ours('run', id, 'sh -c "exit 3"')).code).toBe(3);
    expect(await ours('run', id, 'echo said')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('said\n') as string,
    });
    expect((await ours('run', id, 'echo "Wow!amazing"')).code).toBe(126);
    expect((await ours('run', id, 'exit 7')).code).toBe(7);
    const killed = await create();
    expect((await ours('run', killed, 'kill -9 $$')).code).toBe(137);
    const cat = await create('--', 'cat');
    expect(await ours('run', cat, 'echo')).toMatchObject({
      code: 123,
      stderr: expect.stringContaining('not known') as string,
    });
  });

  it('[TM110] says how much of a long output is missing', async () => {
    const id = await create();
    const whole = await result(peer('run', id, 'seq 1 10', '--json'));
    expect(whole).not.toHaveProperty('truncated');
    const cut: { output?: string; truncated?: { omittedBytes: number; totalBytes: number } } =
      await result(peer('run', id, 'seq 1 100000', '--json'));
    expect(cut.truncated?.totalBytes).toBe(688_895);
    const kept = Buffer.byteLength((cut.output ?? '').replaceAll('\n', '\r\n'));
    expect(kept + (cut.truncated?.omittedBytes ?? 0)).toBe(688_895);
    expect(cut.output).toMatch(/^\d{5}\n/);
    expect((await ours('run', id, 'seq 1 100000')).stderr).toContain(
      'of 688895 bytes are left out',
    );
  });

  it('[TM112] answers in its shapes: inspect, resize, list, snapshots, pastes, late steps', async () => {
    const id = await create('--', 'cat');
    expect(await result(peer('resize', id, '--cols', '90', '--rows', '20', '--json'))).toEqual({
      cols: 90,
      rows: 20,
    });
    await peer('snapshot', id, '--json');
    expect(await result(peer('inspect', id, '--json'))).toMatchObject({
      artifacts: { total: 1, byKind: { snapshot: 1 }, missingCount: 0, health: 'healthy' },
      rendererRuntime: { backend: 'libghostty-vt', booted: false },
      host: { cliVersion: expect.any(String) as string },
    });
    await peer('paste', id, 'pasted');
    const out = join(base, 'events.jsonl');
    await peer('record', 'export', id, '--format', 'events', '--out', out, '--json');
    expect(readFileSync(out, 'utf8')).toContain(String.raw`\u001b[200~pasted\u001b[201~`);
    const steps = JSON.stringify([{ wait: { text: 'never', timeout: 50 } }]);
    expect(await peer('batch', id, steps, '--json')).toMatchObject({
      code: 11,
      envelope: { result: { steps: [{ status: 'failed', error: { code: 'WAIT_TIMEOUT' } }] } },
    });
    const { sessions } = await result(peer('list', '--all', '--json'));
    const times = (sessions as { createdAt: string }[]).map(({ createdAt }) => createdAt);
    expect(times).toEqual(times.toSorted());
  });

  it('[TM151] names the renderers that its scripts know; holdfast tty names its own', async () => {
    const id = await create('--', 'cat');
    const painted = async (how: typeof peer, ...args: string[]): Promise<unknown> =>
      (await result(how('screenshot', id, '--json', ...args)))['rendererBackend'];
    expect(await painted(peer)).toBe('ghostty-web');
    expect(await painted(peer, '--renderer', 'libghostty-vt')).toBe('ghostty-web');
    expect(await painted(ours)).toBe('holdfast');
    expect(await result(peer('--renderer', 'ghostty-web', 'inspect', id, '--json'))).toMatchObject({
      rendererRuntime: { backend: 'ghostty-web' },
    });
    expect(await result(ours('inspect', id, '--json'))).toMatchObject({
      rendererRuntime: { backend: 'xterm-headless' },
    });
  });

  it('[TM112] uses the words that scripts look for', async () => {
    const id = await create();
    const words: [string[], string][] = [
      [['type', id, 'x', '--file', '/x'], 'mutually exclusive'],
      [['type', id, '--file', '/no/such'], 'was not found'],
      [['run', id, ''], 'must not be empty'],
      [['create', '--env', 'A'], 'KEY=VALUE'],
      [['wait', id, '--exit', '--text', 'x'], 'Cannot mix'],
      [['wait', id, '--text', 'x', '--regex', 'y'], 'mutually exclusive'],
      [['wait', id, '--regex', '[x'], 'Invalid regex pattern'],
      [['wait', id, '--regex', '(a+)+'], 'nested quantifiers'],
      [['wait', id, '--cursor-row', 'x'], 'non-negative integer'],
      [['screenshot', id, '--show-cursor', '--hide-cursor'], 'mutually exclusive'],
      [['screenshot', id, '--profile', 'x'], 'unknown render profile'],
      [['batch', id, '{}'], 'JSON array'],
    ];
    const reported = await Promise.all(words.map(([args]) => peer(...args)));
    for (const [index, [args, word]] of words.entries()) {
      const { stderr, code } = reported[index] ?? {};
      expect([args, stderr, code]).toEqual([args, expect.stringContaining(word), 2]);
    }
    expect((await peer('inspect', 'nobody')).stderr).toContain('was not found');
  });

  it('[TM111] collects this home only; others with --all-homes, and none that sleeps is woken', async () => {
    const other = join(base, 'other');
    const elsewhere = (command: string, ...args: string[]): Promise<Reported> =>
      runTty(main, ['tty', command, '--json', ...args], {
        HOLDFAST_HOME: other,
        HOME: base,
        XDG_STATE_HOME: base,
      });
    const { sessionId } = (await result(elsewhere('create', '--', 'true'))) as {
      sessionId: string;
    };
    await elsewhere('wait', sessionId, '--exit');
    await stopKeeper(other);
    const collect = (...args: string[]): Promise<Record<string, unknown>> =>
      result(
        runTty(main, ['tty', 'gc', '--json', ...args], {
          HOLDFAST_HOME: home,
          HOME: base,
          XDG_STATE_HOME: base,
        }),
      );
    const { homes } = await collect();
    expect(homes).toMatchObject([{ home }]);
    await collect('--all-homes');
    expect(await connectable(other)).toBe(false);
    expect(await result(elsewhere('gc'))).toMatchObject({ removedSessionCount: 1 });
    await stopKeeper(other);
  });

  it('[TM115] has programs answered by a running server, and not by a stale socket', async () => {
    const place = new Place();
    try {
      const server = place.start('serve', '--json');
      await server.until('stdout', '\n');
      const made = await place.run('tty', 'create', '--shell', '/bin/bash');
      const id = made.stdout.trim();
      const ask = `stty raw -echo; printf '\\033[6n'; dd bs=1 count=6 2>/dev/null | od -An -c; stty sane`;
      expect((await place.run('tty', 'run', id, ask)).stdout).toContain('R');
      server.child.kill('SIGKILL');
      await server.ended;
      expect(existsSync(join(place.home, 'server.sock'))).toBe(true);
      await place.run('tty', 'type', id, 'echo here\r');
      expect((await place.run('tty', 'wait', id, '--text', 'here')).code).toBe(0);
      expect(await serverAnswers(place.home, { id, owner: 'cli' })).toBe(false);
    } finally {
      await place.close();
    }
  });

  it('[TM136] has programs answered by the keeper while nobody looks, and once while somebody does', async () => {
    const id = await create(
      '--',
      process.execPath,
      '-e',
      `process.stdin.setRawMode(true);
      const ask = (query, isLast) => new Promise((resolve) => {
        let got = '';
        const take = (data) => {
          got += data;
          if (!isLast(got)) return;
          process.stdin.off('data', take);
          resolve(console.log('REPLY ' + JSON.stringify(got)));
        };
        process.stdin.on('data', take);
        process.stdout.write(query);
      });
      (async () => {
        await ask('\\x1b]11;?\\x07\\x1b[c', (got) => got.endsWith('c'));
        console.log('press a key');
        await new Promise((resolve) => process.stdin.once('data', resolve));
        await ask('\\x1b[5n\\x1b[6n', (got) => got.endsWith('R'));
      })();`,
    );
    const link = await connectKeeper({ home, env: {}, startIfMissing: false });
    const screens = new Screens({ clock: systemClock });
    const options = { host: link, screens: () => Promise.resolve(screens), answers: true };
    const session = await openSession('cli', id, options);
    const printed = async (pattern: string): Promise<void> => {
      const waits = [{ id, for: [{ kind: 'pattern' as const, pattern }] }];
      expect((await link.wait('cli', { waits })).met).toMatchObject([{ met: true }]);
    };
    try {
      await printed('press a key');
      const over = session.answerQueries();
      await session.snapshot();
      await link.write('cli', { id, data: Buffer.from('x') });
      await printed('R"');
      await session.close();
      await over;
      const { text } = await link.text('cli', { id });
      expect([...text.matchAll(/REPLY (.*)/g)].map(([, reply]) => reply?.trimEnd())).toEqual([
        String.raw`"\u001b]11;rgb:1e1e/1e1e/2e2e\u0007\u001b[?1;2c"`,
        expect.stringMatching(/^"\\u001b\[0n\\u001b\[\d+;\d+R"$/),
      ]);
    } finally {
      await screens.close();
      await link.close();
    }
  });

  it('[TM114] has skills whose front matter any reader of YAML takes', () => {
    for (const name of ['agent-tty', 'dogfood-tui']) {
      const file = new URL(`../../skill-data/${name}/SKILL.md`, import.meta.url);
      const [, front = ''] = /^---\n([^]*?)\n---\n/.exec(readFileSync(file, 'utf8')) ?? [];
      expect(front).toContain(`name: ${name}`);
      for (const line of front.split('\n')) expect(line).toMatch(/^\w+: [^:#"'{[]*$/);
    }
  });
});

async function connectable(folder: string): Promise<boolean> {
  const link = await connectKeeper({ home: folder, env: {}, startIfMissing: false }).catch(
    () => undefined,
  );
  await link?.close();
  return link !== undefined;
}
