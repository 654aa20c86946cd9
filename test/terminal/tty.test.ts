// The `tty` commands as a script written for agent-tty meets them: envelopes, error codes, exit codes, and what it does
// not do as agent-tty does. The numbers in brackets behind a rule are checks (1–40) and defects (D1–D24) of that peer.
import {
  mkdtempSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { stopKeeper } from '../support/hosts.ts';
import { main, runTty, shim, startTty, type Reported } from '../support/tty-commands.ts';

/** One home for the file: every test uses terminals of its own. */
let folder: string;
let home: string;
let tty: (...args: string[]) => Promise<Reported>;
const result = async <T = Record<string, unknown>>(...args: string[]): Promise<T> => {
  const reported = await tty(...args, '--json');
  if (!reported.envelope?.ok)
    throw new Error(`${args.join(' ')}: ${reported.stdout}${reported.stderr}`);
  return reported.envelope.result;
};
const create = async (...args: string[]): Promise<string> =>
  (
    await result<{ sessionId: string }>(
      'create',
      '--shell',
      '/bin/bash',
      '--env',
      'PS1=$ ',
      '--env',
      `HOME=${home}`,
      ...args,
    )
  ).sessionId;

describe('tty commands', () => {
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'holdfast-tty-'));
    home = join(folder, 'home');
    mkdirSync(home, { mode: 0o700 });
    tty = (...args) => runTty(shim, args, { AGENT_TTY_HOME: home, SHELL: '/bin/bash' });
    return async () => {
      await stopKeeper(home);
      rmSync(folder, { recursive: true, force: true });
    };
  });

  it('[TM31] (1, 3, 7, 8, D9, D11, D20) life of a session: created, listed, inspected, destroyed, collected', async () => {
    const id = await create(
      '--name',
      'mine',
      '--cols',
      '100',
      '--rows',
      '30',
      '--env',
      'SECRET=hunter2',
      '--term',
      'vt220',
    );
    expect(await result('list')).toMatchObject({
      sessions: [{ sessionId: id, status: 'running', name: 'mine' }],
    });
    const seen = await result<{ session: Record<string, unknown> }>('inspect', id);
    expect(seen).toMatchObject({
      terminationCategory: 'running',
      session: {
        status: 'running',
        cols: 100,
        rows: 30,
        term: 'vt220',
        exitCode: null,
        exitSignal: null,
      },
    });
    expect(JSON.stringify(seen)).not.toContain('hunter2');
    expect(await result('run', id, 'echo $TERM $SECRET [$PROMPT_EOL_MARK]')).toMatchObject({
      output: 'vt220 hunter2 []\n',
    });
    expect(await result('destroy', id)).toEqual({ sessionId: id, destroyed: true });
    expect(await result('list')).toEqual({ sessions: [] });
    expect(await result('list', '--all')).toMatchObject({
      sessions: [{ sessionId: id, status: 'destroyed' }],
    });
    const again = await tty('run', id, 'true', '--json');
    expect([again.code, again.envelope.error.code]).toEqual([4, 'SESSION_ALREADY_DESTROYED']);
    expect((await tty('snapshot', id, '--json')).code).toBe(0);
    expect(await result('gc', '--dry-run')).toMatchObject({ dryRun: true, removedSessionCount: 1 });
    expect(await result('gc')).toMatchObject({
      removedSessionCount: 1,
      homes: [{ removedSessions: [id] }],
    });
    expect(await result('list', '--all')).toEqual({ sessions: [] });
    for (const [args, code, name] of [
      [['create', '--json', '--', '/no/such/bin'], 2, 'INVALID_INPUT'],
      [['create', '--cwd', '/no/such', '--json'], 8, 'STORAGE_READ_ERROR'],
      [['create', '--env', 'NOVALUE', '--json'], 2, 'INVALID_INPUT'],
      [['create', '--shell', '/no/shell', '--json'], 2, 'INVALID_INPUT'],
      [['create', '--idle-timeout-ms', '-1', '--json'], 2, 'INVALID_INPUT'],
      [['inspect', 'a/b', '--json'], 2, 'INVALID_SESSION_ID'],
      [['inspect', '01ARZ3NDEKTSV4RRFFQ69G5FAV', '--json'], 3, 'SESSION_NOT_FOUND'],
      [['gc', '--older-than', 'soon', '--json'], 2, 'INVALID_DURATION'],
      [['nonsense', '--json'], 2, 'INVALID_INPUT'],
      [['list', '--nonsense', '--json'], 2, 'INVALID_INPUT'],
    ] as const) {
      const reported = await tty(...args);
      expect([args, reported.code, reported.envelope.error.code]).toEqual([args, code, name]);
      expect(reported.envelope.error.retryable).toBe(false);
    }
    expect(await result('list', '--all')).toEqual({ sessions: [] });
  });

  it('[TM32] (16, 17, 18, D4, D5, D6, D7) run tells its end, and a time-out is an answer with exit 0', async () => {
    const id = await create();
    const failing = await tty('run', id, 'false', '--json');
    expect(failing.code).toBe(0);
    expect(failing.envelope).toMatchObject({
      command: 'run',
      result: {
        accepted: true,
        completed: true,
        timedOut: false,
        exitCode: 1,
        completion: 'marks',
        marker: expect.any(String) as string,
      },
    });
    expect(failing.stdout).toMatch(/^\{\n {2}"ok": true,\n/);
    expect(failing.envelope.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(await result('run', id, 'echo status=$?')).toMatchObject({ output: 'status=1\n' });
    const file = join(folder, 'script');
    writeFileSync(file, 'for i in 1 2; do\n\techo "row $i"\ndone\n');
    expect(await result('run', id, '--file', file)).toMatchObject({ output: 'row 1\nrow 2\n' });
    const slow = await tty('run', id, 'read x; echo "got:[$x]"', '--timeout', '1000', '--json');
    expect([slow.code, slow.envelope.result]).toMatchObject([
      0,
      { completed: false, timedOut: true },
    ]);
    await result('type', id, 'answer', '--append-newline');
    expect(await result('run', id, 'history | tail -n 2')).toMatchObject({
      output: expect.stringMatching(
        /read x; echo "got:\[\$x\]"\n.*history \| tail -n 2\n$/,
      ) as string,
    });
    expect((await result<{ text: string }>('snapshot', id, '--format', 'text')).text).toContain(
      'got:[answer]',
    );
    expect(Object.keys(await result('run', id, 'true', '--no-wait')).sort()).toEqual([
      'accepted',
      'seq',
    ]);
    expect(await result('run', id, 'exit 3')).toMatchObject({ completed: false, timedOut: false });
    const dead = await tty('run', id, 'true', '--json');
    expect([dead.code, dead.envelope.error.code]).toEqual([4, 'SESSION_NOT_RUNNING']);
    expect(await result('inspect', id)).toMatchObject({
      terminationCategory: 'nonzero-exit',
      session: { exitCode: 3 },
    });
    expect(await result('wait', id, '--exit')).toEqual({ timedOut: false, exitCode: 3 });
  });

  it('[TM33] (10, 11, 13, 14, 15, D14, D15, D16, D17) input: text, files, keys, sizes, signals', async () => {
    const id = await create();
    await result('run', id, 'true');
    const [empty, link] = [join(folder, 'empty'), join(folder, 'link')];
    writeFileSync(empty, '');
    symlinkSync('/etc/hostname', link);
    for (const args of [
      ['type', id],
      ['type', id, 'x', '--file', empty],
      ['type', id, '--file', empty],
      ['type', id, '--file', link],
      ['type', id, '--file', '/dev/null'],
      ['type', id, ''],
    ])
      expect([args, (await tty(...args, '--json')).envelope.error.code]).toEqual([
        args,
        'INVALID_INPUT',
      ]);
    const typed = await result<{ seq: number }>('type', id, 'echo typed\n', '--append-newline');
    expect(
      await result('wait', id, '--regex', '(^|\\n)typed', '--after-seq', String(typed.seq)),
    ).toMatchObject({ matched: true });
    expect((await tty('send-keys', id, 'NoSuchKey', '--json')).envelope.error.code).toBe(
      'INVALID_KEYS',
    );
    expect(
      await result('send-keys', id, 'ctrl+u', 'e', 'c', 'h', 'o', 'Space', 'k', 'Enter'),
    ).toMatchObject({ bytesWritten: 8 });
    const pwned = join(folder, 'pwned');
    await result('paste', id, `x\x1b[201~\rtouch ${pwned}\r`);
    await result('send-keys', id, 'C-c');
    expect(await result('run', id, `ls ${pwned}`)).toMatchObject({ exitCode: 2 });
    const words = join(folder, 'words');
    writeFileSync(words, 'printed by the program itself\n');
    await result('run', id, `tail -n +1 -f ${words}`, '--no-wait');
    await result('wait', id, '--text', 'printed by the program itself');
    expect(await result('signal', id, 'SIGINT')).toEqual({ signal: 'SIGINT', delivered: true });
    expect(await result('run', id, 'echo back')).toMatchObject({ output: 'back\n' });
    // Application-cursor mode: the keys are those that less has asked for.
    await result('run', id, 'seq 1 200 | less', '--no-wait');
    await result('wait', id, '--regex', '^1\\n2\\n');
    await result('send-keys', id, 'Down', 'Down');
    expect(await result('wait', id, '--regex', '^3\\n')).toMatchObject({ matched: true });
    await result('send-keys', id, 'q');
    expect((await tty('signal', id, 'INT', '--json')).envelope.error.code).toBe('INVALID_SIGNAL');
    expect((await tty('signal', 'nobody', 'INT', '--json')).code).toBe(3);
    expect(
      (await tty('resize', id, '--cols', '0', '--rows', '5', '--json')).envelope.error.code,
    ).toBe('INVALID_DIMENSIONS');
    expect(await result('resize', id, '--cols', '101', '--rows', '31')).toMatchObject({
      cols: 101,
      rows: 31,
    });
    expect(await result('run', id, 'stty size')).toMatchObject({ output: '31 101\n' });
    expect(await result('inspect', id)).toMatchObject({ session: { cols: 101, creationCols: 80 } });
    const mark = await result<{ seq: number }>('mark', id, '');
    expect(mark.seq).toBeGreaterThan(typed.seq);
    // One that ignores the hang-up, and one that left the session.
    await result(
      'run',
      id,
      "trap '' HUP TERM; setsid sleep 300 & nohup sleep 300 >/dev/null 2>&1 &",
    );
    const destroyed = await tty('destroy', id, '--json');
    expect(destroyed.envelope.result).toEqual({ sessionId: id, destroyed: true });
  });

  it('[TM34] (22, 23, 24, 25, 26, 31, D21) waits and snapshots', async () => {
    const id = await create('--cols', '40');
    await result('run', id, 'echo needle; printf %s "wrapped-$(seq -s- 1 20)"; echo; seq 1 100');
    const missed = await tty('wait', id, '--text', 'needle', '--timeout', '100', '--json');
    expect(missed.code).toBe(11);
    expect(missed.envelope).toMatchObject({
      ok: true,
      result: {
        matched: false,
        timedOut: true,
        visibleLines: expect.arrayContaining(['100']) as unknown,
      },
    });
    expect(missed.envelope.result).not.toHaveProperty('screenHash');
    expect(
      await result('wait', id, '--stream', '--text', 'wrapped-1-2-3-4-5-6-7-8-9-10-11-12-13-14'),
    ).toMatchObject({ matched: true });
    expect(await result('wait', id, '--text', '100', '--cursor-row', '23')).toMatchObject({
      matched: true,
      cursorRow: 23,
    });
    expect(await result('wait', id, '--screen-stable-ms', '50')).toMatchObject({ matched: true });
    expect(await result('wait', id, '--idle-ms', '100')).toEqual({ timedOut: false });
    const structured = await result<{
      screenHash: string;
      scrollbackLines?: unknown;
      cells?: unknown;
    }>('snapshot', id);
    const text = await result<{ screenHash: string }>('snapshot', id, '--format', 'text');
    expect(structured.screenHash).toBe(text.screenHash);
    expect([structured.scrollbackLines, structured.cells]).toEqual([undefined, undefined]);
    const whole = await result<{ scrollbackLines: { text: string }[] }>(
      'snapshot',
      id,
      '--include-scrollback',
      '--include-cells',
    );
    expect(whole.scrollbackLines.some(({ text: line }) => line === 'needle')).toBe(true);
    for (const args of [
      ['--exit', '--text', 'x'],
      ['--text', 'x', '--regex', 'x'],
      ['--regex', '('],
      ['--cursor-row', '-1'],
      ['--text', ''],
      [],
    ])
      expect([args, (await tty('wait', id, ...args, '--json')).code]).toEqual([args, 2]);
  });

  it('[TM35] (9, 12, 28, 29, 30, D2, D13, D18, D19, D24) pictures, recordings and events', async () => {
    const id = await create();
    await result('run', id, 'echo hello');
    await result('resize', id, '--cols', '90', '--rows', '25');
    await result('mark', id, 'here');
    const asked = result('run', id, "read -r -s -p 'Pass''word: ' p; echo");
    await result('wait', id, '--text', 'Password:');
    await result('type', id, 'hunter2', '--append-newline');
    await asked;
    const shot = await result<{
      artifactPath: string;
      pngSizeBytes: number;
      cursorVisible: boolean;
    }>('screenshot', id, '--profile', 'reference-light');
    expect(readFileSync(shot.artifactPath).subarray(1, 4).toString()).toBe('PNG');
    expect([statSync(shot.artifactPath).mode & 0o777, shot.cursorVisible]).toEqual([0o600, false]);
    expect((await tty('screenshot', id, '--profile', 'x', '--json')).code).toBe(2);
    expect((await tty('screenshot', id, '--show-cursor', '--hide-cursor', '--json')).code).toBe(2);
    const cast = await result<{ artifactPath: string; sha256: string }>(
      'record',
      'export',
      id,
      '--format',
      'asciicast',
    );
    const [head = '', ...rest] = readFileSync(cast.artifactPath, 'utf8').trimEnd().split('\n');
    expect(JSON.parse(head)).toMatchObject({
      version: 2,
      width: 80,
      height: 24,
      env: { TERM: 'xterm-256color' },
    });
    expect(new Set(rest.map((line) => (JSON.parse(line) as string[])[1]))).toEqual(
      new Set(['o', 'r', 'm']),
    );
    const upTo = ['record', 'export', id, '--format', 'asciicast', '--to', '5'];
    const hashes = [
      await result<{ sha256: string }>(...upTo),
      await result<{ sha256: string }>(...upTo),
    ];
    expect(hashes[1]?.sha256).toBe(hashes[0]?.sha256);
    const out = join(folder, 'events.jsonl');
    await result('record', 'export', id, '--format', 'events', '--out', out);
    const text = readFileSync(out, 'utf8');
    const events = text
      .trimEnd()
      .split('\n')
      .map(
        (line) =>
          JSON.parse(line) as { seq: number; type: string; payload: Record<string, unknown> },
      );
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_event, index) => index));
    const ran = events.find(({ type }) => type === 'input_run');
    expect(ran?.payload).toMatchObject({ command: 'echo hello', noWait: false });
    expect(events.find(({ type }) => type === 'run_complete')?.payload).toEqual({
      marker: ran?.payload['marker'],
      inputRunSeq: ran?.seq,
    });
    expect(text).not.toContain('hunter2');
    for (const args of [['--format', 'avi'], [], ['--format', 'asciicast', '--timing', 'slow']])
      expect([args, (await tty('record', 'export', id, ...args, '--json')).code]).toEqual([
        args,
        2,
      ]);
    expect(await result('inspect', id)).toMatchObject({
      artifacts: {
        total: 5,
        byKind: { screenshot: 1, recording: 4 },
        missingCount: 0,
        health: 'healthy',
      },
    });
    const byVariable = await startTty(shim, ['screenshot', id, '--json'], {
      AGENT_TTY_HOME: home,
      AGENT_TTY_PROFILE: 'reference-light',
    });
    expect(byVariable.envelope.result).toMatchObject({ profileName: 'reference-light' });
  });

  it('[TM36] (32, 33) batch: checked whole, fails fast or keeps going, and exits as its step', async () => {
    const id = await create();
    const bad = await tty('batch', id, '[{"type":"zzz"},{"type":"a","paste":"b"}]', '--json');
    expect([bad.code, bad.envelope.error.details['stepIndex']]).toEqual([2, 1]);
    const keys = await tty('batch', id, '[{"sendKeys":["Nope"]}]', '--json');
    expect(keys.envelope.error.code).toBe('INVALID_KEYS');
    expect((await tty('batch', id, '[]', '--json')).code).toBe(2);
    const plan = '[{"run":"echo one"},{"wait":{"text":"never","timeout":50}},{"run":"echo two"}]';
    const fast = await tty('batch', id, plan, '--json');
    expect([fast.code, fast.envelope]).toMatchObject([
      11,
      {
        ok: true,
        result: { completedCount: 1, failedIndices: [1], steps: [{}, {}, { status: 'not-run' }] },
      },
    ]);
    const on = await tty('batch', id, plan, '--keep-going', '--json');
    expect([on.code, on.envelope.result]).toMatchObject([
      1,
      { completedCount: 2, failedIndices: [1] },
    ]);
  });

  it('[TM37] (39) without --json: lines, and CODE: message on stderr; the same under holdfast tty', async () => {
    const id = await create();
    expect(await tty('run', id, 'echo plain')).toMatchObject({
      code: 0,
      stdout: 'plain\n',
      stderr: '',
    });
    const late = await tty('wait', id, '--text', 'never', '--timeout', '50');
    expect(late).toMatchObject({
      code: 11,
      stdout: expect.stringMatching(/^timed out\n[^]*plain\n/),
    });
    expect(late.stdout).not.toContain('\n\n');
    expect(await tty('inspect', 'nobody')).toMatchObject({
      code: 3,
      stdout: '',
      stderr: 'SESSION_NOT_FOUND: Session "nobody" was not found.\n',
    });
    expect(await tty('ls')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(id) as string,
    });
    const ours = await startTty(main, ['tty', 'run', id, 'echo ours', '--json'], {
      HOLDFAST_HOME: home,
    });
    expect(ours.envelope).toMatchObject({ ok: true, command: 'run', result: { output: 'ours\n' } });
    const ps = await startTty(main, ['ps', '--home', home], {});
    expect(ps.stdout).toContain(id);
  });
});
