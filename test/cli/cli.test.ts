// The command line as a person and a script meet it: the built program, started as a child, against a real keeper in a
// temporary home.
import { commands } from '../../src/cli/commands.ts';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isAlive, readEntry } from '../../src/system/proc-table.ts';
import { main, Place, root, Running } from '../support/command-line.ts';
import { program } from '../support/hosts.ts';

// oxlint-disable-next-line no-control-regex
const controls = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/;
/** Colour, title, clearing the screen, a bell, a backspace, CSI as one character, and an unfinished sequence. */
const HOSTILE = String.raw`printf '\033[31mred\033[0m \033]0;title\007\033]52;c;aGk=\033\\ \033[2J\a\b\302\23331m end\n\033[3'`;

let place: Place;
beforeAll(() => {
  place = new Place();
});
afterAll(() => place.close());

describe('run', () => {
  it('[C1] passes every byte of stdout to stdout and of stderr to stderr', async () => {
    const script = String.raw`printf 'a\000\377\033[1m\r\n'; printf 'wrong\033' >&2; printf b`;
    const { bytes, stderr, code } = await place.run('run', script);
    expect(bytes).toEqual(Buffer.from('a\0\xff\x1b[1m\r\nb', 'latin1'));
    expect(stderr).toBe('wrong\x1b');
    expect(code).toBe(0);
    const large = await place.run('run', 'seq 1 300000');
    expect(large.bytes.length).toBe(1_988_895);
    expect(large.stdout.endsWith('299999\n300000\n')).toBe(true);
  });

  it('[C1] makes a process wait while its output is not read, and then prints every byte, more than is stored', async () => {
    const faster = 'echo begun; head -c 90000000 /dev/zero';
    const running = place.start('run', '--name', 'faster', faster);
    await running.until('stdout', 'begun');
    running.child.stdout?.pause();
    await place.run('wait', 'faster', '--for', 'idle=200ms');
    const { result } = await place.json('ps');
    const [held] = result['processes'] as { name: string; bytes: { total: number } }[];
    expect(held).toMatchObject({ name: 'faster', state: 'running' });
    expect(held?.bytes.total).toBeLessThan(40_000_000);
    running.child.stdout?.resume();
    const { bytes, stderr, code } = await running.ended;
    expect([bytes.length, stderr, code]).toEqual([90_000_006, '', 0]);
  });

  it('[C1] keeps the order of both streams with --merged', async () => {
    const { stdout, stderr } = await place.run('run', '--merged', 'echo 1; echo 2 >&2; echo 3');
    expect([stdout, stderr]).toEqual(['1\n2\n3\n', '']);
  });

  it.each([
    ['exit 0', 0],
    ['exit 3', 3],
    ['exit 255', 255],
    ['kill -TERM $$', 143],
    ['kill -KILL $$', 137],
  ])('[C2] ends with the exit code of the process: %s', async (script, code) => {
    expect(await place.run('run', script)).toMatchObject({ code, stdout: '' });
  });

  it('[C2] ends with 124 after a hard timeout, and with 123 when only the time to wait was over', async () => {
    const hard = await place.run('run', '--hard-timeout', '50ms', 'sleep 600');
    expect(hard).toMatchObject({
      code: 124,
      stderr: 'holdfast: ended by its hard timeout after 50ms.\n',
    });
    const waited = await place.run('run', '--timeout', '50ms', '--name', 'long', 'sleep 600');
    expect(waited.code).toBe(123);
    const { state } = await describeProcess('long');
    expect(state).toBe('running');
    await place.run('stop', 'long');
  });

  it('[C2] ends with 125 when the keeper was killed, and says that the outcome is unknown', async () => {
    const other = new Place();
    const running = other.start('run', 'echo up; sleep 600');
    await running.until('stdout', 'up');
    const { result } = await other.json('status');
    process.kill(Number(result['pid']), 'SIGKILL');
    const { code, stderr, stdout } = await running.ended;
    expect({ code, stdout }).toEqual({ code: 125, stdout: 'up\n' });
    expect(stderr).toContain('how it ended is unknown');
    const [id = ''] = (await other.run('ps', '-qa')).stdout.split('\n');
    expect((await other.run('stop', id)).stdout).toContain('nothing is left');
    await other.close();
  });

  it('[C3] gives one word to the shell, and takes the words after "--" as they are', async () => {
    expect((await place.run('run', 'echo $((1 + 2))')).stdout).toBe('3\n');
    const words = ['$HOME', 'two words', '', '--json', "it's"];
    const { stdout } = await place.run('run', '--', 'printf', '[%s]', ...words);
    expect(stdout).toBe(words.map((word) => `[${word}]`).join(''));
  });

  it.each([
    [['run']],
    [['run', '--']],
    [['run', '--timeout', 'soon', 'true']],
    [['run', '--timeout', '-1s', 'true']],
    [['run', '--nosuch', 'true']],
    [['run', '--name', '', 'true']],
    [['run', '--owner', '*', 'true']],
    [['logs']],
    [['logs', 'a', 'b']],
    [['logs', 'a', '--tail', 'x']],
    [['wait', 'a', '--for', 'rain']],
    [['wait', 'a', '--for', 'port=70000']],
    [['wait', 'a', '--for', 'text=']],
    [['send', 'a']],
    [['search', 'a']],
    [['export', 'a', '--stream', 'nosuch']],
    [['export', 'a', '--json']],
    [['nosuch']],
    [['--json', 'ps']],
    [['help', 'nosuch']],
  ])(
    '[C8] refuses %j with one sentence, the right use and exit code 2, 125 for run',
    async (args) => {
      const { code, stdout, stderr } = await place.run(...args);
      if (!args.includes('--json') || args[0] === '--json') expect(stdout).toBe('');
      expect(code).toBe(args[0] === 'run' ? 125 : 2);
      if (stdout === '') expect(stderr).toMatch(/^holdfast: .+[.?]\n {10}.+\n$/);
    },
  );

  it('[C25] starts nothing before all of the command line is understood', async () => {
    const made = join(place.folder, 'made');
    for (const wrong of [
      ['--timeout', 'abc'],
      ['--hard-timeout', '0'],
      ['--env', 'NAME'],
      ['--interactive'],
      ['--name', ''],
      ['--nmae', 'x'],
      ['--timeout'],
    ]) {
      const { code, stdout } = await place.run('run', ...wrong, '--', 'touch', made);
      expect({ wrong, code, stdout }).toEqual({ wrong, code: 125, stdout: '' });
      expect((await place.run('run', '--json', ...wrong, '--', 'touch', made)).code).toBe(125);
    }
    expect(existsSync(made)).toBe(false);
  });

  it('[C3] takes several words as a program and its arguments, also options after the first', async () => {
    expect((await place.run('run', 'echo', 'a', '--json', '-b', '--', '$HOME')).stdout).toBe(
      'a --json -b -- $HOME\n',
    );
    expect((await place.run('run', '-e', 'A=b', '--merged', 'printenv', 'A')).stdout).toBe('b\n');
    const mistaken = await place.run('run', 'echo hello', '--background');
    expect(mistaken).toMatchObject({
      code: 125,
      stdout: '',
      stderr: expect.stringContaining("holdfast run --background 'echo hello'"),
    });
  });

  it('[C4] gives the process the environment and directory of its caller, not those of the keeper', async () => {
    const env = { ...place.env, FROM_CALLER: 'yes', HOLDFAST_TOKEN: 'secret' };
    const cwd = mkdtempSync(join(place.folder, 'cwd-'));
    const print = 'echo "$FROM_CALLER|$HOLDFAST_TOKEN|$HOLDFAST_HOME|$(pwd)"';
    const { stdout } = await new Running(['run', print], { env, cwd }).ended;
    expect(stdout).toBe(`yes|||${cwd}\n`);
    const other = await place.run('run', '--cwd', cwd, print);
    expect(other.stdout).toBe(`|||${cwd}\n`);
  });

  it('[C5] sends Ctrl-C on to the process, and ends as the process ends', async () => {
    // A shell runs its trap between commands: a signal that comes just before `sleep 600` would wait for it.
    const naps = 'while :; do sleep 0.05; done';
    const running = place.start('run', `trap "echo interrupted; exit 7" INT; echo up; ${naps}`);
    await running.until('stdout', 'up');
    running.child.kill('SIGINT');
    expect(await running.ended).toMatchObject({ code: 7, stdout: 'up\ninterrupted\n' });
  });

  it('[C5] does so from the key of a real terminal', async () => {
    const words = 'tail -n +1 -f /etc/passwd';
    const inner = ['--', process.execPath, main, 'run', '--home', place.home, words];
    const id = await place.background('--pty', ...inner);
    await place.run('wait', id, '--for', 'text=root');
    await place.run('send', id, '-n', '\x03');
    const { stdout, code } = await place.run('wait', id);
    expect({ stdout, code }).toEqual({ stdout: `${id}  exit 130\n`, code: 130 });
    expect((await place.run('logs', id)).stdout).toContain('ended by SIGINT, sent by cli');
  });

  it('[C5] sends TERM on as TERM', async () => {
    const running = place.start('run', 'echo up; sleep 600');
    await running.until('stdout', 'up');
    running.child.kill('SIGTERM');
    expect(await running.ended).toMatchObject({
      code: 143,
      stderr: 'holdfast: ended by SIGTERM, sent by cli.\n',
    });
  });

  it('[C5] leaves a process running that does not end at the third Ctrl-C', async () => {
    const running = place.start(
      'run',
      '--name',
      'stubborn',
      'trap "echo no" INT; echo up; while :; do sleep 0.05; done',
    );
    await running.until('stdout', 'up');
    running.child.kill('SIGINT');
    await running.until('stdout', 'no');
    running.child.kill('SIGINT');
    await running.until('stderr', 'press Ctrl-C again to detach and leave it running.');
    running.child.kill('SIGINT');
    const { code, stderr } = await running.ended;
    expect(code).toBe(130);
    expect(stderr).toContain('left running: ');
    expect(await describeProcess('stubborn')).toMatchObject({ state: 'running' });
    expect((await place.run('stop', 'stubborn')).code).toBe(0);
  });

  it('[C16] ends when the process has ended although a descendant holds its output open, and says so', async () => {
    const late = 'exec 3<&0; (cat <&3; echo late) & echo main; exit 5';
    const { code, stdout, stderr } = await place.run('run', '--stdin', '--name', 'holder', late);
    expect({ code, stdout }).toEqual({ code: 5, stdout: 'main\n' });
    expect(stderr).toContain('a descendant holds its output open');
    expect((await place.run('ps')).stdout).toContain('\texited\texit 5\t');
    await place.run('send', 'holder', '--eof');
    expect((await place.run('logs', '-f', 'holder')).stdout).toBe('main\nlate\n');
  });

  it('[C17] prints only the id with --background, and what it started outlives every command', async () => {
    const id = await place.background('echo up; sleep 600');
    expect(id).toMatch(/^[0-9a-z]{26}$/);
    const watcher = place.start('logs', '-f', id);
    await watcher.until('stdout', 'up');
    watcher.child.kill('SIGKILL');
    await watcher.ended;
    expect(await describeProcess(id)).toMatchObject({ state: 'running' });
    await place.run('stop', id);
  });

  it('[C17] starts once for one key and the same inputs', async () => {
    const id = await place.background('--key', 'k1', 'echo once; sleep 600');
    const again = await place.json('run', '-b', '--key', 'k1', 'echo once; sleep 600');
    expect(again.result).toMatchObject({ attached: true, process: { id } });
    const other = await place.run('run', '-b', '--key', 'k1', 'echo twice');
    expect(other.code).toBe(125);
    await place.run('stop', id);
  });

  it('[C13] gives the process its own input with --stdin, to the end', async () => {
    const running = place.start('run', '--stdin', 'tr a-z A-Z');
    running.child.stdin?.end('through\0pipe\n');
    expect(await running.ended).toMatchObject({ code: 0, stdout: 'THROUGH\0PIPE\n' });
    const deaf = place.start('run', '--stdin', 'exec 0<&-; echo deaf');
    expect(await deaf.ended).toMatchObject({ code: 0, stdout: 'deaf\n' });
  });
});

describe('a terminal', () => {
  it.each([['run'], ['logs'], ['export']])(
    '[C6] never receives a control character of a process from %s',
    async (command) => {
      const id = await place.finished('--name', 'a\x1b[31mb\n', HOSTILE);
      const { shown } = await place.onTerminal(
        ...(command === 'run' ? ['run', HOSTILE] : [command, id]),
      );
      expect(shown).not.toMatch(controls);
      expect(shown).toContain('red');
      expect(shown).toContain('^G^H\\x9b31m end\r\n');
      expect(shown).not.toContain('title');
    },
  );

  it('[C6] never receives one from a name, a command, a line or an error', async () => {
    await place.finished('--name', 'hostile', `${HOSTILE} # \x1b]0;title\x07\x9b31m`);
    await place.finished('--pty', '--name', 'a\x1b[31mb', 'true');
    for (const args of [
      ['ps', '--all'],
      ['ps', '--all', '--json'],
      ['search', 'hostile', 'end'],
      ['search', 'nosuch\x1b[31m', 'x'],
      ['stop', 'a\x1b]0;x\x07'],
      ['wait', 'hostile', '--for', 'text=end'],
      ['run', '--cwd', '/nosuch\nFAKE: \u202e', 'true'],
      ['tty', 'list', '--all'],
    ]) {
      const { shown } = await place.onTerminal(...args);
      expect(shown.length).toBeGreaterThan(0);
      expect(shown).not.toMatch(controls);
      expect(shown).not.toMatch(/^FAKE|\u202e/m);
    }
  });

  it('[C6] receives the bytes as they are with --raw', async () => {
    const id = await place.finished(HOSTILE);
    const { shown } = await place.onTerminal('logs', '--raw', id);
    expect(shown).toContain('\x1b[31mred\x1b[0m');
  });

  it('[C10] shows ps in columns that fit its width', async () => {
    const id = await place.background(
      '--name',
      'columns',
      `echo "${'long '.repeat(40)}"; sleep 600`,
    );
    await place.run('wait', id, '--for', 'text=long');
    const { shown } = await place.onTerminal('ps');
    const lines = shown.trimEnd().split('\r\n');
    expect(lines[0]).toMatch(/^ID {2,}AGE {2,}STATE {2,}OUTCOME {2,}BYTES {2,}NAME {2,}COMMAND$/);
    const row = lines.find((line) => line.startsWith(id.slice(0, 8)));
    expect(row).toMatch(/ {2}\d+s +running +201 B +columns +echo "long long.*…$/);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
    await place.run('stop', id);
  });
});

describe('scripts', () => {
  it('[C10] get ps as one line each, separated by tabs, whatever a command contains', async () => {
    const id = await place.finished('--name', 'tab\tbed', 'echo "one\ttwo"\nexit 3');
    const { stdout } = await place.run('ps', '--all');
    const row = stdout.split('\n').find((line) => line.startsWith(id));
    expect(row?.split('\t')).toEqual([
      id,
      'closed',
      'exit 3',
      expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      '8',
      'cli',
      'tab\\tbed',
      'echo "one\\ttwo"\\nexit 3',
    ]);
    expect((await place.run('ps')).stdout).not.toContain(id);
    expect((await place.run('ps', '-qa')).stdout.split('\n')).toContain(id);
  });

  it('[C7] get one JSON object from every command', async () => {
    const id = await place.background('--stdin', 'echo up; cat');
    const ended = await place.finished('echo one; exit 3');
    const file = join(place.folder, 'json.bin');
    const calls = [
      ['ps'],
      ['logs', ended],
      ['wait', id, '--for', 'text=up'],
      ['send', id, 'x'],
      ['search', id, 'up'],
      ['kill', id, '-s', 'CONT'],
      ['export', ended, file],
      ['stop', id],
      ['rm', id],
      ['status'],
      ['version'],
      ['help'],
      ['help', 'run'],
      ['ps', '--help'],
      ['run', '-b', 'true'],
      ['demo'],
    ];
    for (const args of calls) {
      const { ok, command, timestamp, result } = await place.json(...args);
      expect({ args, ok, command }).toEqual({ args, ok: true, command: args[0] });
      expect(new Date(timestamp).toISOString()).toBe(timestamp);
      expect(result).toBeTypeOf('object');
    }
    const run = await place.json('run', 'echo out; echo err >&2; exit 3');
    expect(run).toMatchObject({
      ok: true,
      code: 3,
      result: {
        exitCode: 3,
        timedOut: false,
        process: { state: 'closed', outcome: { kind: 'exit', code: 3 } },
      },
    });
    expect(run.result).toMatchObject({ text: expect.stringContaining('out\n') });
  });

  it('[C7] get errors in the same form, and the exit code of the error table', async () => {
    const missing = await place.json('logs', 'nosuch');
    expect(missing).toMatchObject({ ok: false, command: 'logs', code: 3 });
    expect(missing.error).toEqual({
      code: 'not_found',
      message: 'Process "nosuch" not found.',
      details: { id: 'nosuch' },
      remedy: expect.stringMatching(/\.$/),
      retryable: false,
    });
    expect(await place.json('run', '--nosuch', 'x')).toMatchObject({
      code: 125,
      error: { code: 'invalid_input' },
    });
    expect(await place.json('run', '--cwd', '/nosuch', 'true')).toMatchObject({
      code: 125,
      error: { code: 'cwd_not_found' },
    });
    expect(await place.json('run', '--', 'nosuch-program')).toMatchObject({
      code: 127,
      error: { code: 'program_not_found' },
    });
  });

  it('[C8] get an error as one sentence and what to do, on stderr', async () => {
    const ended = await place.finished('true');
    for (const [args, code] of [
      [['logs', 'nosuch'], 3],
      [['kill', ended], 4],
      [['send', ended, 'x'], 4],
      [['search', ended, '('], 2],
      [['run', '--cwd', '/nosuch', 'true'], 125],
      [['run', 'nosuch-program', 'argument'], 127],
      [['run', '--', '/etc/passwd'], 126],
      [['run', '--home', '/etc', 'true'], 125],
      [['ps', '--home', '/etc'], 9],
    ] as const) {
      const result = await place.run(...args);
      expect({ args, code: result.code, stdout: result.stdout }).toEqual({
        args,
        code,
        stdout: '',
      });
      expect(result.stderr).toMatch(/^holdfast: \S.*\n {10}\S.*\.\n$/);
    }
  });

  it('[C9] find a process by its id, the beginning of it, or its name', async () => {
    const id = await place.finished('--name', 'unique-name', 'echo found');
    for (const text of [id, id.slice(0, 10), id.slice(0, 4), 'unique-name']) {
      expect((await place.run('logs', text)).stdout).toBe('found\n');
    }
    expect((await place.run('logs', id.slice(0, 3))).code).toBe(3);
    const newer = await place.finished('--name', 'unique-name', 'echo newer');
    expect((await place.run('logs', 'unique-name')).stdout).toBe('newer\n');
    expect(newer).not.toBe(id);
  });

  it('[C9] get an error when a word matches several processes', async () => {
    const first = await place.background('--name', 'twice', 'sleep 600');
    const second = (await place.run('run', '-b', '--name', 'twice', 'sleep 600')).stdout.trim();
    const byName = await place.run('stop', 'twice');
    expect(byName).toMatchObject({ code: 2, stdout: '' });
    expect(byName.stderr).toContain(first);
    expect(byName.stderr).toContain(second);
    expect((await place.run('logs', '')).code).toBe(2);
    expect((await place.run('stop', first, second)).code).toBe(0);
  });

  it('[C29] learn at the start that a name is in use, and which process it means', async () => {
    const older = await place.background('--name', 'dup', 'sleep 600');
    const newer = await place.run('run', '--name', 'dup', 'true');
    expect(newer).toMatchObject({ code: 0, stderr: expect.stringContaining(`${older} also has`) });
    const waited = await place.run('wait', 'dup', '--timeout', '10ms');
    expect(waited).toMatchObject({
      code: 123,
      stderr: expect.stringContaining(`"dup" means the running process ${older}`),
    });
    await place.run('stop', older);
    expect((await place.run('run', '--name', 'dup', 'true')).stderr).toBe('');
  });

  it('[C27] learn what was probably meant, and what is missing', async () => {
    const id = await place.finished('true');
    for (const [args, words] of [
      [['rnu'], 'did you mean "run"?'],
      [['ls'], 'did you mean "ps"?'],
      [['constructor'], 'Unknown command "constructor".'],
      [['logs', id, '--constructor'], 'unknown option --constructor.'],
      [['help', 'lgos'], 'did you mean "logs"?'],
      [['logs', id, '--folow'], 'did you mean --follow?'],
      [['kill', id, '--signal', 'TREM'], 'did you mean SIGTERM?'],
      [['logs'], 'missing argument ID'],
      [['search', id], 'missing argument PATTERN'],
      [['logs', id, 'x'], 'unexpected argument "x"'],
      [['logs', id, '--tail'], '--tail needs a value'],
      [['logs', id, '--follow=yes'], '--follow takes no value'],
      [['logs', id.slice(0, 3)], 'needs 4 characters or more'],
      [['--json', 'ps'], 'Options go after the command'],
    ] as const) {
      const { stderr, code } = await place.run(...args);
      expect(stderr).toContain(words);
      expect(code).toBe(stderr.includes('not found') ? 3 : 2);
    }
    expect((await place.run('-v')).stdout).toBe((await place.run('version')).stdout);
  });

  it('[C28] see everything about one process with inspect', async () => {
    // It prints when it is the program that is looked for, and no shell any more.
    const child = 'tail -n 1 -f /etc/passwd';
    const id = await place.background('--name', 'looked at', '--key', 'k7', `${child} & wait`);
    await place.run('wait', id, '--for', 'text=:');
    const { stdout, code } = await place.run('inspect', 'looked at');
    expect(code).toBe(0);
    for (const row of [
      `id +${id}`,
      'name +looked at',
      'key +k7',
      'owner +cli',
      `child +\\d+ ${child} \\(.* of processor time, .*B\\)`,
    ])
      expect(stdout).toMatch(new RegExp(`^${row}$`, 'm'));
    const { result } = await place.json('inspect', id);
    expect(result).toMatchObject({
      process: { id },
      ports: [],
      descendants: [{ command: child }],
    });
    expect((await place.run('kill', id, '-9')).stdout).toContain('SIGKILL sent to 2 processes');
    expect((await place.run('inspect', id)).stdout).toMatch(/^state +closed, SIGKILL by cli$/m);
  });

  it('[C9] see only one owner with --owner, and not the others', async () => {
    const id = await place.finished('--owner', 'alice', 'echo hers');
    expect((await place.run('logs', id)).stdout).toBe('hers\n');
    expect((await place.run('logs', id, '--owner', 'alice')).stdout).toBe('hers\n');
    expect((await place.run('logs', id, '--owner', 'bob')).code).toBe(3);
    expect((await place.run('ps', '-a', '--owner', 'bob')).stdout).toBe('');
  });

  it('[C21] that stop listening end a command and what it runs, unless that is to be kept', async () => {
    const id = await place.finished('seq 1 200000');
    const running = place.start('logs', id);
    await running.until('stdout', '1\n');
    running.child.stdout?.destroy();
    expect(await running.ended).toMatchObject({ code: 141, stderr: '' });
    const endless = place.start('run', '--name', 'endless', 'yes');
    await endless.until('stdout', 'y\n');
    endless.child.stdout?.destroy();
    const { code, stderr } = await endless.ended;
    expect(code).toBe(141);
    expect(stderr).toMatch(/^holdfast: the reader of its output went away: sent SIGTERM to \w+\./);
    expect((await place.run('wait', 'endless')).stdout).toContain('SIGTERM by cli');
    const kept = place.start('run', '--keep', '--name', 'kept', 'yes');
    await kept.until('stdout', 'y\n');
    kept.child.stdout?.destroy();
    expect(await kept.ended).toMatchObject({
      code: 141,
      stderr: expect.stringMatching(
        /^holdfast: left running: \w+\. Stop it with "holdfast stop \w+"\.\n$/,
      ),
    });
    expect((await place.run('stop', 'kept')).code).toBe(0);
  });
});

describe('logs', () => {
  it('[C11] prints the last lines exactly, from both streams', async () => {
    const id = await place.finished('--merged', 'seq 1 50000; echo wrong >&2; printf "last\nopen"');
    const tail = async (lines: string): Promise<string> =>
      (await place.run('logs', id, '--tail', lines)).stdout;
    expect(await tail('1')).toBe('open');
    expect(await tail('3')).toBe('wrong\nlast\nopen');
    expect(await tail('0')).toBe('');
    expect((await tail('30000')).split('\n', 1)).toEqual(['20004']);
    expect((await tail('99999999')).split('\n').length).toBe(50_003);
    const apart = await place.finished('seq 1 9 >&2');
    expect(await place.run('logs', apart, '-n', '2')).toMatchObject({
      stdout: '',
      stderr: '8\n9\n',
    });
  });

  it('[C30] follows as one JSON object per line, and says how it ended', async () => {
    const id = await place.finished('echo out; echo err >&2; printf "\\303"; exit 3');
    const { stdout, code } = await place.run('logs', '-f', '--json', id);
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    expect(code).toBe(0);
    expect(lines.at(-1)).toEqual({ event: 'end', outcome: { kind: 'exit', code: 3 } });
    expect(lines).toContainEqual({ event: 'output', stream: 'stderr', text: 'err\n' });
    const texts = lines.filter((line) => 'stream' in line && line.stream === 'stdout');
    expect(texts.map((line) => ('text' in line ? line.text : '')).join('')).toBe('out\n\ufffd');
  });

  it('[C30] ends with 125 and says so when the keeper was killed', async () => {
    const other = new Place();
    const id = await other.background('echo up; sleep 600');
    const following = other.start('logs', '-f', id);
    await following.until('stdout', 'up');
    const { result } = await other.json('status');
    process.kill(Number(result['pid']), 'SIGKILL');
    expect(await following.ended).toMatchObject({
      code: 125,
      stderr: expect.stringContaining('how it ended is unknown'),
    });
    await other.run('stop', id);
    await other.close();
  });

  it('[C11] follows until nothing can follow', async () => {
    const id = await place.background('--stdin', 'echo first; cat; echo last');
    const following = place.start('logs', '-f', id);
    await following.until('stdout', 'first');
    await place.run('send', id, 'middle', '--eof');
    expect(await following.ended).toMatchObject({ code: 0, stdout: 'first\nmiddle\nlast\n' });
  });

  it('[C11] says where output is missing, and how much', async () => {
    const other = new Place();
    const env = {
      ...other.env,
      HOLDFAST_LIMITS: '{"journalBytes":300000,"journalHeadBytes":70000}',
    };
    await new Running(['run', '--name', 'cut', 'seq 1 200000'], { env }).ended;
    const { stdout, stderr } = await other.run('logs', 'cut');
    const [, bytes] =
      /^holdfast: (\d+) bytes of output are missing here: dropped by the size limit\.\n$/.exec(
        stderr,
      ) ?? [];
    expect(Number(bytes) + stdout.length).toBe(1_288_895);
    expect(stdout.startsWith('1\n2\n')).toBe(true);
    expect(stdout.endsWith('199999\n200000\n')).toBe(true);
    await other.close();
  });
});

describe('wait', () => {
  it('[C12] ends with the exit code of the process, and with the first that is not 0 of several', async () => {
    const good = await place.background('true');
    const bad = await place.background('exit 9');
    expect(await place.run('wait', bad)).toMatchObject({ code: 9, stdout: `${bad}  exit 9\n` });
    expect(await place.run('wait', good, bad)).toMatchObject({
      code: 9,
      stdout: `${good}  exit 0\n${bad}  exit 9\n`,
    });
    expect(await place.run('wait', good, '--for', 'settled')).toMatchObject({ code: 0 });
  });

  it('[C12] waits for text, a pattern, a port or silence, and never ends the process', async () => {
    const program = join(root, 'test/programs/listen.mjs');
    const id = await place.background('--stdin', '--', process.execPath, program);
    expect((await place.run('wait', id, '--for', 'port')).stdout).toMatch(
      / {2}listens on port \d+\n$/,
    );
    expect((await place.run('wait', id, '--for', 'silence=1ms')).code).toBe(0);
    const never = await place.run('wait', id, '--for', 'text=never', '--timeout', '20ms');
    expect(never).toMatchObject({ code: 123, stdout: 'Not within 20ms; still running.\n' });
    await place.run('stop', id);
    expect(await place.run('wait', id, '--for', 'text=never')).toMatchObject({ code: 1 });
    const lines = await place.finished('echo one; echo two 22');
    expect((await place.run('wait', lines, '--for', String.raw`regex=t\w+ \d+`)).stdout).toBe(
      `${lines}  two 22\n`,
    );
  });

  it('[C12] takes the first of several processes with --any', async () => {
    const slow = await place.background('sleep 600');
    const quick = await place.background('exit 4');
    expect(await place.run('wait', slow, quick, '--any')).toMatchObject({
      code: 4,
      stdout: `${quick}  exit 4\n`,
    });
    await place.run('stop', slow);
  });
});

describe('send', () => {
  it('[C13] sends a line, exact bytes, and the end of the input', async () => {
    const id = await place.background('--stdin', 'cat');
    await place.run('send', id, 'a line');
    await place.run('send', id, '-n', 'no end');
    const bytes = Buffer.from([0, 255, 27, 10]);
    const sending = place.start('send', id, '-', '--eof');
    sending.child.stdin?.end(bytes);
    expect(await sending.ended).toMatchObject({ code: 0, stdout: '' });
    await place.run('wait', id, '--for', 'closed');
    expect((await place.run('export', id)).bytes).toEqual(
      Buffer.concat([Buffer.from('a line\nno end'), bytes]),
    );
    const deaf = await place.background('sleep 600');
    expect(await place.run('send', deaf, 'x')).toMatchObject({ code: 4 });
    await place.run('stop', deaf);
  });
});

describe('stop, kill, rm', () => {
  it('[C14] end what left the group and what ignores TERM, and say that nothing is left', async () => {
    const runaway = `trap '' TERM; sleep 600 & setsid sh -c 'echo away $$; exec sleep 600' & wait`;
    const id = await place.background(runaway);
    await place.run('wait', id, '--for', 'regex=away \\d+');
    const pid = Number((await place.run('logs', id)).stdout.split(' ')[1]);
    const { stdout, code } = await place.run('stop', id, '--grace', '20ms');
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /SIGKILL by cli after .*; 3 processes signalled; 1 of them had left its group; SIGKILL was needed; nothing is left\n$/,
    );
    expect(isAlive(readEntry(pid))).toBe(false);
    expect(await place.run('stop', id)).toMatchObject({
      code: 0,
      stdout: `${id}  had already exited: SIGKILL by cli\n`,
    });
  });

  it('[C14] send any signal by name, and try every process although one fails', async () => {
    const id = await place.background('trap "echo usr1; exit 6" USR1; sleep 600 & echo up; wait');
    await place.run('wait', id, '--for', 'text=up');
    const { code, stdout, stderr } = await place.run('kill', 'nosuch', id, '--signal', 'usr1');
    expect({ code, stdout }).toEqual({ code: 3, stdout: `${id}  SIGUSR1 sent to 2 processes\n` });
    expect(stderr).toContain('"nosuch" not found');
    expect(await place.run('wait', id)).toMatchObject({ code: 6 });
    expect((await place.run('kill', id, '--signal', 'NOSUCH')).code).toBe(2);
  });

  it('[C14] forget a process and its output, and a living one only by force', async () => {
    const id = await place.background('sleep 600');
    expect((await place.run('rm', id)).code).not.toBe(0);
    expect(await place.run('rm', id, '--force')).toMatchObject({
      code: 0,
      stdout: `${id}  removed\n`,
    });
    expect((await place.run('logs', id)).code).toBe(3);
  });
});

describe('search', () => {
  it('[C22] prints lines with their number, their surroundings, and 1 when there are none', async () => {
    const id = await place.finished('seq 1 100');
    expect((await place.run('search', id, '^5[01]$')).stdout).toBe('50:50\n51:51\n');
    expect((await place.run('search', id, '50', '-C', '1')).stdout).toBe('49-49\n50:50\n51-51\n');
    const near = await place.run('search', id, '^(2|3|5|9)$', '-C', '1');
    expect(near.stdout).toBe('1-1\n2:2\n3:3\n4-4\n5:5\n6-6\n--\n8-8\n9:9\n10-10\n');
    const { hits } = (await place.json('search', id, '^50$')).result as { hits: unknown[] };
    expect(hits).toMatchObject([{ lineNumber: 50, offset: 138 }]);
    expect((await place.run('search', id, '^5[01]$', '--text')).code).toBe(1);
    const limited = await place.run('search', id, '9', '--limit', '2');
    expect(limited.stderr).toContain('there may be more than 2 hits');
  });
});

describe('export', () => {
  const script = String.raw`printf 'a\000\377\n'; printf 'b\033' >&2; head -c 100000 /dev/zero`;
  const outBytes = Buffer.concat([Buffer.from('a\0\xff\n', 'latin1'), Buffer.alloc(100_000)]);

  it('[C15] writes the exact bytes of all or one stream, to stdout or to a private file', async () => {
    const id = await place.finished(script);
    expect((await place.run('export', id)).bytes.length).toBe(100_006);
    expect((await place.run('export', id, '--stream', 'stdout')).bytes).toEqual(outBytes);
    expect((await place.run('export', id, '-', '--stream', 'stderr')).bytes).toEqual(
      Buffer.from('b\x1b'),
    );
    const file = join(place.folder, 'out.bin');
    expect(await place.run('export', id, file, '--stream', 'stdout')).toMatchObject({ code: 0 });
    expect(readFileSync(file)).toEqual(outBytes);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(await place.run('export', id, file)).toMatchObject({ code: 2 });
    expect(readFileSync(file)).toEqual(outBytes);
    expect(await place.run('export', id, file, '--force', '--stream', 'stderr')).toMatchObject({
      code: 0,
    });
    expect(readFileSync(file)).toEqual(Buffer.from('b\x1b'));
    expect((await place.run('export', 'nosuch', join(place.folder, 'none'))).code).toBe(3);
    expect(existsSync(join(place.folder, 'none'))).toBe(false);
  });

  it('[C15] reads the journal files alone where no keeper runs, and leaves them as they are', async () => {
    const other = new Place();
    const id = await other.finished('--name', 'kept', script);
    await other.background('--name', 'live', 'echo half; sleep 600');
    await other.run('wait', 'live', '--for', 'text=half');
    const copy = mkdtempSync(join(tmpdir(), 'holdfast-copy-'));
    cpSync(join(other.home, 'journals'), join(copy, 'journals'), { recursive: true });
    await other.close();
    // Torn, as after a crash; a folder that anyone may read would be refused to a keeper.
    const names = readdirSync(join(copy, 'journals'));
    for (const name of names) appendFileSync(join(copy, 'journals', name), Buffer.alloc(20, 1));
    const before = names.map((name) => readFileSync(join(copy, 'journals', name)));
    const runIn = (home: string, ...args: string[]) =>
      new Running([...args, '--home', home], { env: other.env }).ended;
    const run = runIn.bind(undefined, copy);
    const exported = await run('export', id.slice(0, 8), '--stream', 'stdout');
    expect({ code: exported.code, stderr: exported.stderr }).toEqual({ code: 0, stderr: '' });
    expect(exported.bytes).toEqual(outBytes);
    expect((await run('export', 'live')).stdout).toBe('half\n');
    expect((await run('export', 'nosuch')).code).toBe(3);
    expect((await runIn('/nosuch', 'export', id)).code).toBe(3);
    expect(existsSync('/nosuch')).toBe(false);
    expect(names.map((name) => readFileSync(join(copy, 'journals', name)))).toEqual(before);
    expect(readdirSync(copy)).toEqual(['journals']);
    rmSync(copy, { recursive: true });
  });

  it('[C15] names what is damaged, gives the rest, and ends with 8', async () => {
    const other = new Place();
    const id = await other.background('--stdin', 'seq 1 100; cat; echo after');
    await other.run('wait', id, '--for', 'regex=^100$');
    await other.run('send', id, '--eof');
    await other.run('wait', id, '--for', 'closed');
    await other.run('shutdown');
    const [name = ''] = readdirSync(join(other.home, 'journals'));
    const path = join(other.home, 'journals', name);
    const bytes = readFileSync(path);
    const at = bytes.indexOf('\n50\n');
    bytes[at + 1] = 0x36;
    writeFileSync(path, bytes);
    const { code, stdout, stderr } = await other.run('export', id);
    expect({ code, stdout }).toEqual({ code: 8, stdout: 'after\n' });
    expect(stderr).toBe(
      'holdfast: after 0 bytes: 292 bytes of output are missing here: damaged on disk.\n',
    );
    await other.close();
  });
});

describe('the keeper', () => {
  it('[C18] is started by nothing that only looks, and a home that was never used stays unused', async () => {
    const other = new Place();
    expect(await other.run('status')).toMatchObject({ code: 9, stderr: '' });
    expect(await other.run('ps')).toMatchObject({ code: 0, stdout: '' });
    expect(await other.run('logs', 'x')).toMatchObject({ code: 3 });
    expect(await other.run('shutdown')).toMatchObject({
      code: 0,
      stdout: `No keeper is running for ${other.home}.\n`,
    });
    expect(existsSync(other.home)).toBe(false);
    await other.close();
  });

  it('[C18] is ended by shutdown with everything it runs, and what it kept can be read afterwards', async () => {
    const other = new Place();
    const id = await other.background('echo kept; sleep 600');
    await other.run('wait', id, '--for', 'text=kept');
    const { result } = await other.json('status');
    expect(result['live']).toBe(1);
    expect(await other.run('shutdown')).toMatchObject({
      code: 0,
      stdout: `The keeper (pid ${String(result['pid'])}) is gone; 1 process ended.\n`,
    });
    expect((await other.run('status')).code).toBe(9);
    // As a killed keeper may leave it: whoever only reads leaves it, too.
    const madeAhead = join(other.home, 'journals', `${id}.0002.hfj`);
    writeFileSync(madeAhead, '');
    expect((await other.run('export', id)).stdout).toBe('kept\n');
    expect(existsSync(madeAhead)).toBe(true);
    expect((await other.run('logs', id)).stdout).toBe('kept\n');
    expect(existsSync(madeAhead)).toBe(false);
    expect((await other.run('ps', '-a')).stdout).toContain('SIGTERM by host closed');
    await other.close();
  });
});

/** The files that a command loads, as Node's own record of what was executed has them. */
async function loadedFiles(args: readonly string[]): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-loaded-'));
  const { code } = await new Running(args, { env: { ...place.env, NODE_V8_COVERAGE: folder } })
    .ended;
  expect(code).toBe(0);
  const urls = readdirSync(folder).flatMap((name) => {
    const { result } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as {
      result: { url: string }[];
    };
    return result.map(({ url }) => url);
  });
  rmSync(folder, { recursive: true });
  return urls
    .filter((url) => url.startsWith('file:'))
    .map((url) => fileURLToPath(url).replace(`${join(root, 'dist')}/`, ''))
    .toSorted();
}

describe('help, version and the tour', () => {
  it('[C19] help and version need nothing but Node: no dependency is loaded', async () => {
    const bare = mkdtempSync(join(tmpdir(), 'holdfast-bare-'));
    cpSync(join(root, 'dist'), join(bare, 'dist'), { recursive: true });
    cpSync(join(root, 'package.json'), join(bare, 'package.json'));
    const run = (...args: string[]) =>
      new Running(args, { script: join(bare, 'dist/cli/main.js'), env: place.env }).ended;
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      version: string;
    };
    for (const args of [['version'], ['--version'], ['-V']])
      expect((await run(...args)).stdout).toBe(`${version}\n`);
    const help = await run('--help');
    expect(help).toMatchObject({ code: 0, stderr: '' });
    expect(await run()).toEqual(help);
    const names = [...help.stdout.matchAll(/^ {2}([a-z-]+) {2,}\S/gm)].map(
      ([, name]) => name ?? '',
    );
    expect(names).toEqual([...commands.keys()]);
    // The built program again and again in one process: only the first start takes long.
    const all = await new Running([join(bare, 'dist/cli/main.js'), ...names], {
      script: program('help-of-all.mjs'),
      env: place.env,
    }).ended;
    expect(all.code).toBe(0);
    for (const [index, text] of all.stdout.split('\0').slice(0, -1).entries()) {
      expect(text).toMatch(new RegExp(`^holdfast ${names[index]}`));
      expect(text.split('\n').filter((line) => line.length > 120)).toEqual([]);
    }
    expect(all.stdout.split('\0')).toHaveLength(names.length + 1);
    expect(await run('run', '--help')).toEqual(await run('help', 'run'));
    rmSync(bare, { recursive: true });
  });

  it('[C60] a command loads few files: its own, and what all commands need', async () => {
    await place.run('run', '--name', 'ended', 'true');
    const parts = {
      version: ['version'],
      help: ['help'],
      run: ['run', 'true'],
      ps: ['ps'],
      wait: ['wait', 'ended'],
      logs: ['logs', 'ended'],
    };
    const loaded = Object.entries(parts).map(
      async ([name, args]) => [name, await loadedFiles(args)] as const,
    );
    const files = Object.fromEntries(await Promise.all(loaded));
    const always = ['cli-parts/always.js', 'cli-parts/rolldown-runtime.js', 'cli/main.js'];
    expect(files['version']).toEqual(always);
    expect(files['help']).toEqual(always);
    for (const name of ['run', 'ps', 'wait', 'logs']) {
      expect(files[name]).toEqual(expect.arrayContaining([...always, 'cli-parts/usual.js']));
      // The two others only pass on what is in `usual`: the command, and the way to the keeper.
      expect(files[name]?.length).toBeLessThanOrEqual(6);
    }
  });

  it('[C20] demo tells the truth about what it did, and its three commands work', async () => {
    const { code, stdout, stderr } = await place.run('demo');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('it exited:  exit 3');
    expect(stdout).toMatch(
      /3 processes signalled, 1 of them outside its group; nothing is left of it\./,
    );
    const commands = [...stdout.matchAll(/^ {3}node (\S+) (ps --all|logs \w+|run '.*')$/gm)];
    expect(commands.map(([, script]) => script)).toEqual(Array(3).fill(main));
    const logs = commands.find(([, , rest]) => rest?.startsWith('logs'))?.[2] ?? '';
    expect((await place.run(...logs.split(' '))).stdout).toContain('step 2 of 3: ready');
    expect((await place.run('ps')).stdout).not.toContain('setsid');
  });
});

async function describeProcess(text: string): Promise<{ state: string }> {
  const { result } = await place.json('logs', text);
  return result['process'] as { state: string };
}
