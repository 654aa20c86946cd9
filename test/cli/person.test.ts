// The command line as a person meets it: at a terminal, with a shell that completes, beside a server, on a disk that
// cannot be written.
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { endsWithin } from '../../src/cli/local/process.ts';
import { connect } from '../../src/client/connect.ts';
import { MachineFonts, scriptsWithoutFont } from '../../src/screen/picture/machine-fonts.ts';
import { main, Place, Running, withoutFirstTimes } from '../support/command-line.ts';
import { failure, inProcess, outputText, OWNER, startProcess, waitFor } from '../support/hosts.ts';

let place: Place;
beforeAll(() => {
  place = new Place();
});
afterAll(() => place.close());

/** A command on a terminal that the same keeper keeps: its id. */
function onTerminal(command: string, ...args: string[]): Promise<string> {
  const inner = [main, command, '--home', place.home, ...args];
  return place.background('--pty', '--', process.execPath, ...inner);
}

async function ending(id: string): Promise<{ code: number | null; shown: string }> {
  const { code } = await place.run('wait', id, '--for', 'closed');
  // A terminal within a terminal doubles the carriage return.
  const shown = (await place.run('logs', id)).stdout.replaceAll('\r\r', '\r');
  return { code, shown: withoutFirstTimes(shown) };
}

describe('a person at a terminal', () => {
  it('[C31] gets the colours of a process on a terminal, or where they are asked for, and nothing else of it', async () => {
    const script = String.raw`printf '\033[31mred\033[2J\033]0;title\007 end\n\033[1mleft'`;
    for (const flags of [['--pty'], ['--color']]) {
      const { shown } = await ending(await onTerminal('run', ...flags, script));
      expect(shown).toContain('\x1b[31mred end\r\n\x1b[1mleft\x1b[0m');
      expect(shown.indexOf('\x1b[31m')).toBe(0);
    }
    const { shown } = await ending(await onTerminal('run', script));
    expect(shown).toMatch(/^red end\r\nleft\r\n/);
    const kept = await place.finished('--pty', script);
    expect((await ending(await onTerminal('logs', kept))).shown).toContain('\x1b[31mred end');
  });

  it('[C61] runs, lists and attaches on a terminal that says its size is 0', async () => {
    const inner = `${process.execPath} ${main}`;
    const script = `stty cols 0 rows 0; ${inner} run --home ${place.home} --pty 'stty size' && ${inner} ps --home ${place.home} --all`;
    const { code, shown } = await ending(await place.background('--pty', '--', 'sh', '-c', script));
    expect([code, shown]).toEqual([0, expect.stringMatching(/^24 80\r\n/)]);
    expect(shown).toContain('stty size');
  });

  it('[C22] sees the part of a line that a search has found', async () => {
    const id = await place.finished('echo one ERROR here');
    const { shown } = await ending(await onTerminal('search', id, 'ERR[A-Z]+'));
    expect(shown).toBe('1:one \x1b[31mERROR\x1b[0m here\r\n');
  });

  it('[C32] sits down with run -it, types, and ends as the program ends', async () => {
    const script = 'echo ready; read line; echo "got $line"; exit 7';
    const id = await onTerminal('run', '-it', '--name', 'asks', 'sh', '-c', script);
    await place.run('wait', id, '--for', 'text=ready');
    await place.run('send', id, 'a word');
    const { code, shown } = await ending(id);
    expect(code).toBe(7);
    expect(shown).toContain('got a word');
    const left = await onTerminal('run', '-it', '--name', 'stays', 'echo ready; exec cat');
    await place.run('wait', left, '--for', 'text=ready');
    await place.run('send', left, '-n', '\x1d');
    expect(await ending(left)).toMatchObject({
      code: 123,
      shown: expect.stringContaining('left running: '),
    });
    expect((await place.run('stop', 'stays')).code).toBe(0);
  });

  it('[C33] sees whose processes are listed when they are of several owners, and only those asked for', async () => {
    const ids = [
      await place.background('--owner', 'ann', '--name', 'web-1', 'sleep 600'),
      await place.background('--name', 'web-2', 'sleep 600'),
      await place.finished('--name', 'old-web', 'exit 3'),
    ];
    const { shown } = await place.onTerminal('ps', '--name', 'web');
    expect(shown).toMatch(/BYTES +OWNER +NAME +COMMAND/);
    expect(shown).toMatch(/ann +web-1 /);
    const listed = async (...args: string[]) =>
      (await place.run('ps', '-q', ...args)).stdout.split('\n').filter((id) => ids.includes(id));
    expect(await listed('--name', 'web')).toEqual([ids[1], ids[0]]);
    expect(await listed('--state', 'closed')).toEqual([ids[2]]);
    expect(await listed('-a', '--name', 'web', '-n', '1')).toEqual([ids[1]]);
    expect(await place.run('prune', '--older-than', '1h')).toMatchObject({
      stdout: '0 processes deleted.\n',
    });
    await place.run('prune');
    expect(await listed('-a', '--name', 'web')).toEqual([ids[1], ids[0]]);
    await place.run('stop', ids[0] ?? '', ids[1] ?? '');
  });

  it('[C33] prunes at the same time delete each process once, and none stops at what another deleted', async () => {
    const ids: string[] = [];
    for (let at = 0; at < 8; at += 1) ids.push(await place.finished('true'));
    const all = await Promise.all([1, 2, 3].map(() => place.json('prune')));
    expect(all.map(({ code }) => code)).toEqual([0, 0, 0]);
    const removed = all.flatMap(({ result }) => result['removed'] as string[]);
    expect(removed.filter((id) => ids.includes(id)).toSorted()).toEqual(ids.toSorted());
  });

  it('[C40] is asked before prune forgets anything', async () => {
    await place.finished('--name', 'forgettable', 'echo old');
    const near = await inProcess();
    const argv = [process.execPath, main, 'prune', '--home', place.home];
    for (const [answer, code, told] of [
      ['n\r', 1, 'Nothing was deleted.'],
      ['\x04', 1, 'Nothing was deleted.'],
      ['y\r', 0, 'deleted.'],
    ] as const) {
      const seat = await startProcess(near, { argv, streams: 'pty' });
      await waitFor(near, seat, { kind: 'text', text: 'output? [y/N]' });
      await near.write(OWNER, { id: seat, data: Buffer.from(answer) });
      const { process: asked } = await waitFor(near, seat, { kind: 'closed' });
      expect({ answer, outcome: asked.outcome }).toEqual({
        answer,
        outcome: { kind: 'exit', code },
      });
      expect(await outputText(near, seat)).toContain(told);
    }
    expect((await place.run('logs', 'forgettable')).code).not.toBe(0);
  });
});

describe('a shell', () => {
  /** What a shell would offer, in each of the shells that are here. */
  function offered(shell: string, words: readonly string[]): string[] {
    const bin = join(place.folder, 'bin');
    mkdirSync(bin, { recursive: true });
    const program = join(bin, 'holdfast');
    writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`);
    chmodSync(program, 0o755);
    const env = { ...process.env, ...place.env, PATH: `${bin}:${process.env['PATH'] ?? ''}` };
    const bash = `eval "$(holdfast completion bash)"; COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _holdfast; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const args =
      shell === 'bash'
        ? ['-c', bash, 'bash', 'holdfast', ...words]
        : [
            '-c',
            `holdfast completion fish | source; complete -C "$argv"`,
            '--',
            'holdfast',
            ...words,
          ];
    const said = execFileSync(shell, args, { env, encoding: 'utf8' });
    return said
      .split('\n')
      .map((line) => line.split('\t')[0] ?? '')
      .filter(Boolean);
  }

  const shells = ['bash', 'fish'].filter((name) => spawnSync(name, ['-c', 'true']).status === 0);

  it.each(shells)(
    '[C34] completes commands, options, their values, names and ids, and starts no keeper: %s',
    async (shell) => {
      const other = place;
      place = new Place();
      try {
        expect(offered(shell, ['lo'])).toEqual(['logs']);
        expect(offered(shell, ['run', '--hard'])).toEqual(['--hard-timeout']);
        expect(offered(shell, ['wait', 'x', '--for', 'ex'])).toEqual(['exit']);
        expect(offered(shell, ['kill', '--signal', 'USR'])).toEqual(['USR1', 'USR2']);
        expect(offered(shell, ['tty', 'snap'])).toEqual(['snapshot']);
        expect(offered(shell, ['tty', 'create', '--she'])).toEqual(['--shell']);
        expect(offered(shell, ['token', 'rev'])).toEqual(['revoke']);
        expect(offered(shell, ['run', '--cwd', '/us'])[0]).toMatch(/^\/usr\/?$/);
        expect(offered(shell, ['logs', 'w'])).toEqual([]);
        expect(existsSync(place.home)).toBe(false);
        const made = join(place.folder, 'made');
        await place.background('--name', `w$(touch ${made})`, 'sleep 600');
        const id = await place.background('--name', 'web-1', 'sleep 600');
        expect(offered(shell, ['logs', 'we'])).toEqual(['web-1']);
        expect(offered(shell, ['stop', id.slice(0, 12)])).toEqual([id]);
        expect(existsSync(made)).toBe(false);
      } finally {
        await place.close();
        place = other;
      }
    },
  );

  it('[C34] that is zsh takes the script as it is', (context) => {
    if (spawnSync('zsh', ['-fc', 'true']).status !== 0) context.skip('zsh is not installed');
    const script = execFileSync(process.execPath, [main, 'completion', 'zsh'], {
      encoding: 'utf8',
    });
    const said = spawnSync('zsh', ['-fc', `${script}\nwhence -w _holdfast`], { encoding: 'utf8' });
    expect(said.stdout).toBe('_holdfast: function\n');
  });
});

describe('beside a server', () => {
  it('[API40] a port in use is named with who has it, and one that cannot be is refused before', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const refused = await place.run('serve', '--port', String(port));
    expect(refused.code).toBe(4);
    expect(refused.stderr).toContain(`Port ${port} of 127.0.0.1 is in use by pid ${process.pid} (`);
    taken.close();
    const wrong = await place.run('serve', '--port', '80000');
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('more than 65535') });
    expect(wrong.stderr).not.toContain('mistake');
  });

  it('[C41] an address that others reach is refused with the option that allows it', async () => {
    const { code, stderr } = await place.run('serve', '--host', '0.0.0.0', '--port', '0');
    expect([code, stderr]).toEqual([expect.any(Number), expect.stringContaining('--allow-remote')]);
    expect(code).not.toBe(0);
  });

  it('[API41] a second server names the address of the first one; a restart gives it all its options again', async () => {
    const folder = join(place.folder, 'runs here');
    mkdirSync(folder);
    const origin = 'http://127.0.0.1:8099';
    const options = [
      '--allow-origin',
      origin,
      '--allow-host',
      'proxy.example',
      '--directory',
      'runs here',
    ];
    const args = ['serve', '--json', ...options];
    const first = new Running(args, { env: place.env, cwd: place.folder });
    await first.until('stdout', '\n');
    const { url, pid } = JSON.parse(first.text('stdout')) as { url: string; pid: number };
    const second = await place.run('serve');
    expect(second.code).toBe(4);
    expect(second.stderr).toContain(`${url}, pid ${pid}.`);
    expect(second.stderr).toContain('holdfast restart --port N');
    expect((await place.run('status')).stdout).toMatch(
      new RegExp(`^server      [\\d.]+, ${url}, pid ${pid}$`, 'm'),
    );
    const { result } = await place.json('restart');
    expect(result['url']).toBe(url);
    expect((await first.ended).stderr).toBe('');
    expect(readFileSync(join(place.home, 'server.lock'), 'utf8')).toContain(JSON.stringify(folder));
    const ask = (headers: Record<string, string>) => fetch(`${url}/docs`, { headers });
    expect((await ask({ Origin: origin })).status).toBe(200);
    expect((await ask({ Origin: 'http://127.0.0.1:8098' })).status).toBe(403);
    await place.run('shutdown');
  });
});

describe('a server that died', () => {
  interface Noted {
    readonly url: string;
    readonly pid: number;
    readonly again: readonly string[];
  }

  const noted = (): Noted =>
    JSON.parse(readFileSync(join(place.home, 'server.lock'), 'utf8')) as Noted;

  async function kill(): Promise<Noted> {
    const server = noted();
    process.kill(server.pid, 'SIGKILL');
    expect(await endsWithin(server.pid, 60_000)).toBe(true);
    return server;
  }

  /** By whatever connects: the SDK, as `holdfast mcp` does. */
  async function revived(): Promise<Noted> {
    const holdfast = await connect({ home: place.home, env: { ...process.env, ...place.env } });
    await holdfast.close();
    return noted();
  }

  it('[SV60] comes back with its port and its options; one that got SIGTERM, without', async () => {
    const origin = 'http://127.0.0.1:8099';
    const again = ['--allow-origin', origin, '--directory', place.folder];
    const first = new Running(['serve', '--json', '--allow-origin', origin, '--directory', '.'], {
      env: place.env,
      cwd: place.folder,
    });
    await first.until('stdout', '\n');
    const { url } = await kill();
    expect(await revived()).toMatchObject({ url, again });
    const answer = await fetch(`${url}/docs`, { headers: { Origin: origin } });
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([
      200,
      origin,
    ]);
    // What it does not get is nobody's mistake: its port is taken by now.
    await kill();
    const taken = createServer().listen(Number(new URL(url).port), '127.0.0.1');
    await once(taken, 'listening');
    const elsewhere = await revived();
    expect(elsewhere).toMatchObject({ again });
    expect(elsewhere.url).not.toBe(url);
    taken.close();
    // A restart of one that is dead gives it the same.
    await kill();
    expect((await place.json('restart')).result['url']).toBe(elsewhere.url);
    expect(noted()).toMatchObject({ again });
    // A start that fails forgets nothing.
    const { pid } = await kill();
    const refused = await place.run('serve', '--host', '192.0.2.1', '--allow-remote');
    expect(refused.stderr).toContain('192.0.2.1 is no address of this machine');
    expect(await revived()).toMatchObject({ url: elsewhere.url, again });
    expect(noted().pid).not.toBe(pid);
    // Read before: what it says of itself goes with it.
    const { pid: told } = noted();
    process.kill(told, 'SIGTERM');
    expect(await endsWithin(told, 60_000)).toBe(true);
    expect(await revived()).toMatchObject({ again: [] });
    await place.run('shutdown');
  });

  it('[SV60] whose options make no sense any more is not started without them; what to do is said', async () => {
    const home = join(place.folder, 'changed');
    mkdirSync(home, { mode: 0o700 });
    const note = { url: 'http://127.0.0.1:1', again: ['--completion-webhok', 'http://x/'] };
    writeFileSync(join(home, 'server.lock'), JSON.stringify({ pid: 1, ...note }), { mode: 0o600 });
    const problem = await failure(connect({ home, reconnectMs: 600_000 }));
    expect(problem.message).toContain('--completion-webhok');
    expect(problem.message).toContain('start one with "holdfast serve"');
  });

  it('[SV61] starts its keeper with the limits of the environment, as every command does', async () => {
    const fresh = new Place();
    const env = { ...fresh.env, HOLDFAST_LIMITS: '{"graceMs":1234}' };
    const server = new Running(['serve', '--json', '--token-file', join(fresh.folder, 'token')], {
      env,
    });
    await server.until('stdout', '\n');
    const { url, tokenFile } = JSON.parse(server.text('stdout')) as Record<string, string>;
    const token = readFileSync(tokenFile ?? '', 'utf8').trim();
    const answer = await fetch(`${url}/v1/limits`, {
      headers: { Authorization: `Bearer ${token}` },
    });
    expect(await answer.json()).toMatchObject({ host: { graceMs: 1234 } });
    await fresh.close();
    await server.ended;
    const wrong = new Running(['serve'], { env: { ...place.env, HOLDFAST_IDLE: 'soon' } });
    expect(await wrong.ended).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('HOLDFAST_IDLE "soon" is not a duration'),
    });
  });
});

describe('a home', () => {
  it('[C35] that cannot be made is WRONG to doctor, and the reason is named', async () => {
    const home = '/dev/null/home';
    const { stdout, code } = await place.run('doctor', '--home', home);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^WRONG +home +\/dev\/null\/home: \/dev\/null is not a directory/m);
    const refused = await place.run('run', '--home', home, 'true');
    expect(refused.code).toBe(125);
    expect(refused.stderr).toContain('HOLDFAST_HOME');
  });

  it('[SC62] doctor says once whether pictures show Chinese, Japanese and Korean, else how to get a font', async () => {
    const { stdout } = await place.run('doctor');
    const missing = scriptsWithoutFont(new MachineFonts());
    const lines = stdout.split('\n').filter((line) => /^ok +fonts +pictures show/.test(line));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(
      missing.length === 0 ? 'Chinese' : `boxes for ${missing.join(', ')}`,
    );
    expect(stdout.includes('fonts-noto-cjk')).toBe(missing.length > 0);
  });

  it('[C35] on a disk mounted read-only is WRONG as well', async (context) => {
    const mount = join(place.folder, 'read-only');
    mkdirSync(mount);
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'ro', 'tmpfs', mount]).status === 0;
    if (!mounted) context.skip('mounting needs root');
    try {
      const home = ['--home', join(mount, 'a', 'home')];
      expect((await place.run('doctor', ...home)).stdout).toContain('read-only file system');
      const refused = await place.run('run', ...home, 'true');
      expect(refused.stderr).toContain('is on a read-only file system');
    } finally {
      execFileSync('umount', [mount]);
    }
  });
});
