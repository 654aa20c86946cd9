// The coordination of runs with everything around it faked: every transition, without a shell.
import { describe, expect, it } from 'vitest';
import { RunBench, tick } from '../../../test/support/run-bench.ts';
import { identityOf, type Foreground } from './foreground.ts';
import type { Sentinel } from './sentinel.ts';

const id = 't';

describe('runs by marks', () => {
  it('[TM3] a run is typed at the prompt, and its end tells status, directory and its own output', async () => {
    const bench = new RunBench();
    bench.prompt();
    const result = bench.runs.run({ id, command: 'make' });
    await tick();
    expect(bench.typed).toEqual(['make\r']);
    bench.print('make\r\n');
    bench.runs.mark({ kind: 'begin' });
    bench.print('built\r\n');
    bench.clock.advance(20);
    bench.prompt(2, '/src');
    expect(await result).toEqual({
      run: expect.any(String) as string,
      seq: 1,
      endSeq: 2,
      typed: true,
      completed: true,
      timedOut: false,
      completion: 'marks',
      exitCode: 2,
      cwd: '/src',
      durationMs: 20,
      outputFrom: 6,
      outputTo: 13,
    });
    expect(bench.notes).toMatchObject([
      { note: 'run', command: 'make', completion: 'marks' },
      { note: 'runEnd', startSeq: 1, exitCode: 2 },
    ]);
    expect(bench.clock.pending).toBe(0);
  });

  it('[TM3] where the shell has nothing before a command, its output begins behind the echo', async () => {
    const bench = new RunBench();
    bench.prompt();
    const result = bench.runs.run({ id, command: 'a\nb' });
    await tick();
    expect(bench.typed).toEqual(['{\ra\rb\r}\r']);
    bench.print('{\r\na\r\nb\r\n}\r');
    bench.print('\n> ');
    bench.runs.mark({ kind: 'more' });
    bench.print('> > ');
    bench.runs.mark({ kind: 'more' });
    const from = bench.offset;
    bench.print('out\r\n');
    bench.prompt(0);
    expect(await result).toMatchObject({ outputFrom: from, outputTo: from + 5 });
  });

  it('[TM3] several lines go as one paste to a line editor that takes pastes', async () => {
    const bench = new RunBench();
    bench.runs.mark({ kind: 'end', status: 0 });
    bench.print('\x1b[?2004h$ ');
    bench.runs.mark({ kind: 'ready' });
    void bench.runs.run({ id, command: 'a\x1b[201~\nb\n' });
    await tick();
    expect(bench.typed).toEqual(['\x1b[200~a\nb\x1b[201~\r']);
  });

  it('[TM4] two at once never cross: the second is typed when the first has ended', async () => {
    const bench = new RunBench();
    bench.prompt();
    const first = bench.runs.run({ id, command: 'one' });
    const second = bench.runs.run({ id, command: 'two' });
    await tick();
    expect(bench.typed).toEqual(['one\r']);
    bench.prompt(1);
    await tick();
    expect(bench.typed).toEqual(['one\r', 'two\r']);
    bench.prompt(2);
    expect([(await first).exitCode, (await second).exitCode]).toEqual([1, 2]);
  });

  it('[TM4] nothing is typed before the first prompt, nor while a prompt is being drawn', async () => {
    const bench = new RunBench();
    const result = bench.runs.run({ id, command: 'one' });
    await tick();
    expect(bench.typed).toEqual([]);
    bench.runs.mark({ kind: 'end', status: 0 });
    await tick();
    expect(bench.typed).toEqual([]);
    bench.runs.mark({ kind: 'ready' });
    await tick();
    expect(bench.typed).toEqual(['one\r']);
    // Prompts that are drawn again say nothing.
    bench.runs.mark({ kind: 'ready' });
    bench.prompt(0);
    expect(await result).toMatchObject({ completed: true });
    expect(bench.clock.pending).toBe(0);
  });

  it('[TM4] other input at the prompt is not taken for a run', async () => {
    const bench = new RunBench();
    bench.prompt();
    bench.runs.otherInput(Buffer.from('sleep 1\r'));
    const result = bench.runs.run({ id, command: 'mine' });
    await tick();
    expect(bench.typed).toEqual([]);
    bench.runs.mark({ kind: 'begin' });
    bench.prompt(9);
    await tick();
    expect(bench.typed).toEqual(['mine\r']);
    bench.prompt(3);
    expect(await result).toMatchObject({ exitCode: 3 });
  });

  it('[TM4] what was typed ahead is waited for: a prompt counts only when it stands', async () => {
    const bench = new RunBench();
    bench.shellInFront();
    bench.prompt();
    bench.runs.otherInput(Buffer.from('sleep 1\rls\r'));
    bench.runs.mark({ kind: 'begin' });
    const result = bench.runs.run({ id, command: 'mine' });
    bench.prompt(0);
    bench.unread = true;
    bench.clock.advance(210);
    await tick();
    expect(bench.typed).toEqual([]);
    bench.unread = false;
    bench.runs.mark({ kind: 'begin' });
    bench.clock.advance(210);
    bench.prompt(7);
    await tick();
    expect(bench.typed).toEqual([]);
    bench.clock.advance(210);
    await tick();
    expect(bench.typed).toEqual(['mine\r']);
    bench.prompt(5);
    expect(await result).toMatchObject({ exitCode: 5 });
  });

  it('[TM4] a line end that the line editor ignored does not hold runs for ever', async () => {
    const bench = new RunBench();
    bench.shellInFront();
    bench.prompt();
    bench.runs.otherInput(Buffer.from('\r'));
    void bench.runs.run({ id, command: 'mine' });
    bench.clock.advance(3001);
    await tick();
    expect(bench.typed).toEqual(['mine\r']);
  });

  it.each(['awake', 'unread', 'unheard'] as const)(
    '[TM121] another typed line does not count as ignored while the shell is %s with it',
    async (how) => {
      const bench = new RunBench();
      bench.shellInFront(how !== 'awake');
      bench.prompt();
      bench.runs.otherInput(Buffer.from('ls\r'));
      bench.unread = how === 'unread';
      bench.unheard = how === 'unheard';
      const result = bench.runs.run({ id, command: 'mine' });
      bench.clock.advance(20_000);
      await tick();
      expect(bench.typed).toEqual([]);
      bench.unread = bench.unheard = false;
      bench.runs.mark({ kind: 'begin' });
      bench.prompt(0);
      await tick();
      expect(bench.typed).toEqual(['mine\r']);
      bench.prompt(3);
      expect(await result).toMatchObject({ exitCode: 3 });
    },
  );

  it('[TM121] a shell that reads whole lines ignores none: its next end is of that line, however late', async () => {
    const bench = new RunBench();
    bench.edits = false;
    bench.shellInFront();
    bench.prompt();
    bench.runs.otherInput(Buffer.from('sleep 5\r'));
    const result = bench.runs.run({ id, command: 'mine' });
    bench.reader = { kind: 'other', name: 'sleep', pid: 2 };
    bench.clock.advance(10_000);
    bench.shellInFront();
    bench.clock.advance(10_000);
    await tick();
    expect(bench.typed).toEqual([]);
    bench.prompt(0);
    await tick();
    expect(bench.typed).toEqual(['mine\r']);
    bench.prompt(3);
    expect(await result).toMatchObject({ exitCode: 3 });
  });

  it('[TM5] the time being over ends only the waiting: a late end is still recorded', async () => {
    const bench = new RunBench();
    bench.prompt();
    const result = bench.runs.run({ id, command: 'slow', run: 'r1', timeoutMs: 100 });
    await tick();
    bench.clock.advance(100);
    expect(await result).toMatchObject({ completed: false, timedOut: true, completion: 'unknown' });
    expect(bench.finished).toEqual([]);
    bench.prompt(4);
    expect(bench.finished).toMatchObject([{ run: 'r1', startSeq: 1, exitCode: 4 }]);
    expect(await bench.runs.wait('r1', undefined)).toMatchObject({ completed: true, exitCode: 4 });
    expect(bench.clock.pending).toBe(0);
  });

  it('[TM5] a run that was never typed when its time was over is never typed', async () => {
    const bench = new RunBench();
    bench.prompt();
    const first = bench.runs.run({ id, command: 'slow' });
    const second = bench.runs.run({ id, command: 'rm', timeoutMs: 50 });
    await tick();
    bench.clock.advance(50);
    expect(await second).toMatchObject({ seq: 0, completed: false, timedOut: true });
    bench.prompt(0);
    await first;
    await tick();
    expect(bench.typed).toEqual(['slow\r']);
  });

  it('[TM6] the same name is run once, and waited for again', async () => {
    const bench = new RunBench();
    bench.prompt();
    const asked = [1, 2].map(() => bench.runs.run({ id, command: 'once', run: 'mine' }));
    await tick();
    expect(bench.typed).toEqual(['once\r']);
    bench.prompt(6);
    for (const each of await Promise.all(asked))
      expect(each).toMatchObject({ run: 'mine', exitCode: 6 });
    expect(await bench.runs.run({ id, command: 'once', run: 'mine' })).toMatchObject({
      exitCode: 6,
    });
    await expect(bench.runs.run({ id, command: 'other', run: 'mine' })).rejects.toMatchObject({
      code: 'key_conflict',
    });
    await expect(bench.runs.wait('nobody', 1)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('[TM7] the end of the terminal answers everyone, without a completion', async () => {
    const bench = new RunBench();
    bench.prompt();
    const asked = ['exit', 'queued'].map((command) => bench.runs.run({ id, command }));
    const sentinel = bench.runs.run({ id, command: 'x', completion: 'sentinel' });
    await tick();
    bench.runs.ended();
    for (const each of await Promise.all([...asked, sentinel]))
      expect(each).toMatchObject({ completed: false, timedOut: false, ended: true });
    expect(bench.finished).toEqual([]);
    expect(bench.armed.size).toBe(0);
    expect(bench.clock.pending).toBe(0);
    await expect(bench.runs.run({ id, command: 'late' })).rejects.toMatchObject({
      code: 'not_running',
    });
  });

  it('[TM8] (21) an append or a write that fails rejects who waits, and the next run goes on', async () => {
    const bench = new RunBench();
    bench.prompt();
    bench.refuseAppend = new Error('disk');
    await expect(bench.runs.run({ id, command: 'a' })).rejects.toThrow('disk');
    bench.refuseAppend = undefined;
    bench.prompt();
    const failing = bench.runs.run({ id, command: 'b' });
    await tick();
    bench.refuseAppend = new Error('full');
    bench.prompt();
    await expect(failing).rejects.toThrow('full');
    bench.refuseAppend = undefined;
    bench.refuseType = new Error('gone');
    await expect(bench.runs.run({ id, command: 'c' })).rejects.toThrow('gone');
    bench.refuseType = undefined;
    bench.prompt();
    const good = bench.runs.run({ id, command: 'd' });
    await tick();
    bench.prompt(8);
    expect(await good).toMatchObject({ exitCode: 8 });
    expect(bench.clock.pending).toBe(0);
  });

  it('[TM9] an unclosed command says that the shell waits for the rest of it', async () => {
    const bench = new RunBench();
    bench.prompt();
    const result = bench.runs.run({ id, command: 'echo "', timeoutMs: 10 });
    await tick();
    bench.runs.mark({ kind: 'more' });
    bench.clock.advance(10);
    expect(await result).toMatchObject({ completed: false, incomplete: true });
  });

  it('[TM120] an open command is broken off only when the shell sleeps, has read all and was heard', async () => {
    const bench = new RunBench();
    bench.shellInFront();
    bench.prompt();
    const open = bench.runs.run({ id, command: 'echo "' });
    await tick();
    bench.runs.mark({ kind: 'more' });
    expect(await open).toMatchObject({ completed: false, incomplete: true });
    bench.shellInFront(false);
    const next = bench.runs.run({ id, command: 'mine' });
    for (const so of [
      () => bench.shellInFront(false),
      () => Object.assign(bench, { unread: true }).shellInFront(),
      () => Object.assign(bench, { unread: false, unheard: true }).shellInFront(),
    ]) {
      so();
      bench.clock.advance(5000);
      await tick();
      expect(bench.typed).toEqual(['echo "\r']);
    }
    bench.unheard = false;
    bench.clock.advance(1000);
    await tick();
    expect(bench.typed).toEqual(['echo "\r', '\x03']);
    bench.prompt(130);
    bench.clock.advance(1000);
    await tick();
    expect(bench.typed).toEqual(['echo "\r', '\x03', 'mine\r']);
    bench.runs.mark({ kind: 'begin' });
    bench.prompt(3);
    expect(await next).toMatchObject({ completed: true, exitCode: 3 });
    expect(bench.clock.pending).toBe(0);
  });

  it('[TM10] (37) an abort gives up the waiting and leaves the run', async () => {
    const bench = new RunBench();
    bench.prompt();
    const controller = new AbortController();
    const result = bench.runs.run({ id, command: 'a', run: 'r' }, controller.signal);
    await tick();
    controller.abort();
    await expect(result).rejects.toMatchObject({ code: 'aborted' });
    bench.prompt(1);
    expect(await bench.runs.wait('r', undefined)).toMatchObject({ exitCode: 1 });
  });
});

describe('the shell that makes marks', () => {
  const bash = { kind: 'shell', name: 'bash', pid: 1, language: 'posix', sleeps: true } as const;

  it('[TM98] is not another one that took its place before its prompt was read', async () => {
    const bench = new RunBench({ argv: ['bash', '--rcfile', '/f'] });
    bench.runs.otherInput(Buffer.from('exec bash --norc\r'));
    const identity = identityOf(1, ['bash', '--norc']);
    bench.reader = { ...bash, identity };
    bench.prompt();
    bench.runs.mark({ kind: 'begin' });
    const result = bench.runs.run({ id, command: 'mine' });
    await tick();
    expect(bench.typed).toEqual(['mine\r']);
    bench.clock.advance(100);
    bench.statuses.get([...bench.armed][0] as Sentinel)?.(3);
    bench.clock.advance(1000);
    expect(await result).toMatchObject({ completion: 'sentinel', exitCode: 3 });
  });

  it('[TM97] is known behind a script of its name', async () => {
    const bench = new RunBench({ argv: ['bash', '--rcfile', '/f'] });
    bench.reader = { ...bash, identity: identityOf(1, ['/opt/bin/bash', '--rcfile', '/f']) };
    bench.runs.otherInput(Buffer.from('\r'));
    bench.prompt();
    const result = bench.runs.run({ id, command: 'mine' });
    bench.clock.advance(1000);
    await tick();
    expect(bench.typed).toEqual(['mine\r']);
    bench.runs.mark({ kind: 'begin' });
    bench.prompt(3);
    expect(await result).toMatchObject({ completion: 'marks', exitCode: 3 });
  });
});

describe('runs without a wait', () => {
  it('[TM11] are typed at once; at a prompt their end is known later', async () => {
    const bench = new RunBench();
    bench.prompt();
    const result = await bench.runs.run({ id, command: 'bg', run: 'r', wait: false });
    expect(result).toMatchObject({ seq: 1, completed: false, timedOut: false });
    expect(bench.notes).toMatchObject([{ note: 'run', noWait: true }]);
    // Something runs: typed all the same, and nobody will know its end.
    expect(await bench.runs.run({ id, command: 'y', wait: false })).toMatchObject({ seq: 2 });
    expect(bench.typed).toEqual(['bg\r', 'y\r']);
    bench.prompt(3);
    expect(await bench.runs.wait('r', undefined)).toMatchObject({ exitCode: 3 });
    bench.runs.ended();
    expect(bench.clock.pending).toBe(0);
  });
});

describe('runs by sentinel', () => {
  it.each(['unseen', 'other'] as const)(
    '[TM12] a sentinel that was asked for is typed, too, where the shell is %s when its turn comes',
    async (kind) => {
      const bench = new RunBench({ marks: false });
      bench.shellInFront(false);
      const result = bench.runs.run({ id, command: 'make', completion: 'sentinel' });
      await tick();
      expect(bench.typed).toEqual([]);
      bench.reader = kind === 'unseen' ? { kind } : { kind, name: 'program', pid: 1 };
      bench.clock.advance(100);
      await tick();
      const [sentinel] = bench.armed;
      expect(bench.typed).toEqual([`make\r${sentinel?.line}\r`]);
      bench.statuses.get(sentinel as Sentinel)?.(3);
      expect(await result).toMatchObject({ completion: 'sentinel', completed: true, exitCode: 3 });
    },
  );

  it('[TM12] the line is typed behind the command, its end tells the status, and it is disarmed', async () => {
    const bench = new RunBench({ marks: false });
    const result = bench.runs.run({ id, command: 'make\n', completion: 'sentinel' });
    await tick();
    const [sentinel] = bench.armed;
    expect(bench.typed).toEqual([`make\r${sentinel?.line}\r`]);
    bench.print('make\r\nbuilt\r\n');
    bench.statuses.get(sentinel as Sentinel)?.(2);
    expect(await result).toMatchObject({ completion: 'sentinel', completed: true, exitCode: 2 });
    expect(bench.armed.size).toBe(0);
    expect(bench.notes).toMatchObject([
      { completion: 'sentinel' },
      { note: 'runEnd', completion: 'sentinel', startSeq: 1 },
    ]);
  });

  it('[TM12] two at once each have their own, and a late one is still recorded', async () => {
    const bench = new RunBench({ marks: false });
    const first = bench.runs.run({
      id,
      command: 'a',
      run: 'a',
      completion: 'sentinel',
      timeoutMs: 5,
    });
    const second = bench.runs.run({ id, command: 'b', run: 'b', completion: 'sentinel' });
    await tick();
    const [one, two] = [...bench.armed] as [Sentinel, Sentinel];
    expect(one.token).not.toBe(two.token);
    bench.clock.advance(5);
    expect(await first).toMatchObject({ timedOut: true });
    bench.statuses.get(two)?.(2);
    bench.statuses.get(one)?.(1);
    expect(await second).toMatchObject({ run: 'b', exitCode: 2 });
    expect(bench.finished).toMatchObject([
      { run: 'b', startSeq: 2 },
      { run: 'a', startSeq: 1 },
    ]);
  });
});

describe('runs in a shell without marks', () => {
  const identity = identityOf(1, ['bash']);
  const shell = { kind: 'shell', name: 'bash', pid: 1, language: 'posix', identity } as const;

  it('[TM122] a child that is seen in a look beside makes no other shell of the one it was typed into', async () => {
    const fork: Foreground = { kind: 'soon', name: 'bash', pid: 2 };
    // Every second look meets a child that the shell has just made.
    let looks = 0;
    const foreground = (): Foreground => (looks++ % 2 === 1 ? fork : { ...shell, sleeps: true });
    const bench = new RunBench({ marks: false, foreground });
    const result = bench.runs.run({ id, command: 'make' });
    for (let turn = 0; turn < 20 && bench.armed.size === 0; turn += 1) {
      await tick();
      bench.clock.advance(100);
    }
    const [sentinel] = bench.armed;
    bench.statuses.get(sentinel as Sentinel)?.(3);
    bench.clock.advance(1000);
    const reported = await result;
    expect(reported).toMatchObject({ completed: true, completion: 'sentinel', exitCode: 3 });
    expect(reported).not.toHaveProperty('entered');
  });

  it('[TM12] its output ends with its sentinel, however late the shell is seen again', async () => {
    const bench = new RunBench({ marks: false });
    bench.shellInFront();
    const result = bench.runs.run({ id, command: 'make' });
    await tick();
    bench.print('make\r\nbuilt\r\n');
    bench.clock.advance(100);
    bench.reader = { kind: 'soon', name: 'bash', pid: 2 };
    const [sentinel] = bench.armed;
    bench.statuses.get(sentinel as Sentinel)?.(3);
    bench.print('$ ');
    bench.shellInFront();
    bench.clock.advance(1000);
    expect(await result).toMatchObject({
      exitCode: 3,
      outputFrom: 6,
      outputTo: 13,
      outputMixed: true,
    });
  });

  it.each([
    {
      when: 'at rest',
      before: 'make\r\nbuilt\r\n\x1b[1m$ \x1b[0m',
      behind: '\r\n',
      prompt: '\x1b[1m$ \x1b[0m',
    },
    {
      when: 'while its prompt is drawn',
      before: 'make\r\nbuilt\r\n$',
      behind: ' \r\n',
      prompt: '$ ',
    },
    { when: 'before its prompt', before: 'make\r\n', behind: 'built\r\n$ \r\n', prompt: '$ ' },
    {
      when: 'before its output',
      before: 'make\r\n',
      behind: '\r\nbuilt\r\n$ ',
      prompt: '$ ',
      mixed: true,
    },
  ])(
    '[TM132] output ends before the prompt, which is drawn again behind a sentinel typed $when',
    async ({ before, behind, prompt, mixed = false }) => {
      const bench = new RunBench({ marks: false });
      bench.shellInFront();
      const result = bench.runs.run({ id, command: 'make' });
      await tick();
      bench.print(before);
      bench.clock.advance(100);
      bench.print(behind);
      bench.statuses.get([...bench.armed][0] as Sentinel)?.(3);
      bench.print(prompt);
      bench.clock.advance(100);
      const outputTo = (before + behind).indexOf('built') + 'built\r\n'.length;
      expect(await result).toMatchObject({ exitCode: 3, outputFrom: 6, outputTo });
      expect((await result).outputMixed ?? false).toBe(mixed);
    },
  );

  it('[TM99] the sentinel is not typed while the shell is awake, has something to read or was not heard', async () => {
    const bench = new RunBench({ marks: false });
    bench.shellInFront();
    const result = bench.runs.run({ id, command: 'read x' });
    await tick();
    expect(bench.typed).toEqual(['read x\r']);
    for (const so of [
      () => bench.shellInFront(false),
      () => Object.assign(bench, { unread: true }).shellInFront(),
      () => Object.assign(bench, { unread: false, unheard: true }).shellInFront(),
      // The command reads lines, which the shell itself does not.
      () => Object.assign(bench, { unheard: false, edits: false }),
    ]) {
      so();
      bench.clock.advance(5000);
      await tick();
      expect(bench.armed.size).toBe(0);
    }
    bench.edits = true;
    bench.clock.advance(1000);
    const [sentinel] = bench.armed;
    bench.statuses.get(sentinel as Sentinel)?.(0);
    bench.clock.advance(1000);
    expect(await result).toMatchObject({ exitCode: 0 });
  });

  it('[TM99] a shell that edits lines is not typed into while it still reads its files', async () => {
    const bench = new RunBench({ marks: false });
    bench.shellInFront();
    bench.edits = false;
    void bench.runs.run({ id, command: 'make' });
    bench.clock.advance(2000);
    await tick();
    expect(bench.typed).toEqual([]);
    bench.edits = true;
    bench.clock.advance(1000);
    await tick();
    expect(bench.typed[0]).toBe('make\r');
    bench.runs.ended();
  });
});

describe('runs whose end nobody tells', () => {
  it('[TM13] are answered when it is quiet, as unknown and not completed', async () => {
    const bench = new RunBench({ marks: false });
    const result = bench.runs.run({ id, command: '1+1' });
    await tick();
    expect(bench.typed).toEqual(['1+1\r']);
    bench.clock.advance(400);
    bench.print('2\r\n');
    bench.clock.advance(400);
    await tick();
    let answered = false;
    void result.then(() => (answered = true));
    await tick();
    expect(answered).toBe(false);
    bench.clock.advance(101);
    expect(await result).toMatchObject({
      completed: false,
      timedOut: false,
      completion: 'unknown',
    });
    expect(bench.finished).toEqual([]);
    expect(bench.clock.pending).toBe(0);
  });

  it('[TM13] a shell that should make marks and makes none is not waited for for ever', async () => {
    const bench = new RunBench();
    const result = bench.runs.run({ id, command: 'ls' });
    await tick();
    expect(bench.typed).toEqual([]);
    bench.clock.advance(11_000);
    await tick();
    expect(bench.typed).toEqual(['ls\r']);
    bench.clock.advance(500);
    expect(await result).toMatchObject({ completion: 'unknown', completed: false });
    const next = bench.runs.run({ id, command: 'ls' });
    await tick();
    expect(bench.typed).toHaveLength(2);
    bench.clock.advance(500);
    expect(await next).toMatchObject({ completion: 'unknown' });
  });

  it('[TM105] without a time limit are answered when nothing can be done for long', async () => {
    const bench = new RunBench();
    bench.prompt();
    bench.reader = { kind: 'other', name: 'python3', pid: 7 };
    bench.runs.otherInput(Buffer.from('python3\r'));
    bench.runs.mark({ kind: 'begin' });
    const queued = bench.runs.run({ id, command: '1+1' });
    await tick();
    bench.clock.advance(32_000);
    expect(await queued).toMatchObject({ typed: false, seq: 0, busyWith: 'python3' });
    expect(bench.typed).toEqual([]);
    expect(bench.clock.pending).toBe(0);
  });

  it('[TM14] a command typed where a secret is asked for is not recorded', async () => {
    const bench = new RunBench({ marks: false });
    bench.secret = true;
    void bench.runs.run({ id, command: 'hunter2', wait: false });
    await tick();
    expect(bench.notes).toEqual([
      { note: 'run', run: expect.any(String) as string, completion: 'unknown', noWait: true },
    ]);
    bench.runs.ended();
  });
});
