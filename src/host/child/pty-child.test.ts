import { createHash } from 'node:crypto';
import {
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import {
  blockedInWrite,
  Nursery,
  numberedLines,
  openDescriptors,
  planOf,
  shellPlan,
  turnsUntil,
} from '../../../test/support/recorder.ts';
import { sized } from '../../../test/support/slow.ts';
import type { LaunchPlan } from '../../protocol/process.ts';
import { isAlive, readEntry } from '../../system/proc-table.ts';
import { startPtyChild } from './pty-child.ts';

let nursery: Nursery;
let directory: string;

beforeEach(() => {
  nursery = new Nursery();
  directory = mkdtempSync(join(tmpdir(), 'holdfast-pty-'));
});
afterEach(async () => {
  await nursery.endAll();
  rmSync(directory, { recursive: true });
});

const terminal = { streams: 'pty', stdin: 'pipe' } as const;
const pty = (script: string, options: Partial<LaunchPlan> = {}) =>
  nursery.start(startPtyChild, shellPlan(script, { ...terminal, ...options }));

/** A terminal prints a line's end as two characters. */
const asPrinted = (content: Buffer) => content.toString().replaceAll('\n', '\r\n');

describe('completeness', () => {
  test.each([36, 10_000, 131_072])(
    '[P2] a burst of %i bytes before the exit arrives whole, again and again',
    async (size) => {
      const content = numberedLines(size);
      const file = join(directory, 'burst');
      writeFileSync(file, content);
      const expected = asPrinted(content);
      for (let run = 0; run < sized(15, 50); run += 1) {
        const { child, recorder } = await nursery.start(
          startPtyChild,
          planOf(['/bin/cat', file], terminal),
        );
        expect(await recorder.done()).toEqual({ code: 0 });
        expect(recorder.text('pty') === expected).toBe(true);
        expect(recorder.calls).toEqual(['output', 'exited', 'ended']);
        child.release();
      }
    },
  );

  test('[P2] many terminals at once lose and mix up nothing', async () => {
    const content = numberedLines(30_000);
    writeFileSync(join(directory, 'burst'), content);
    const runs = await Promise.all(
      Array.from({ length: 25 }, (_, index) => pty(`echo ${index}; cat burst`, { cwd: directory })),
    );
    for (const [index, { recorder }] of runs.entries()) {
      await recorder.done();
      expect(recorder.text() === `${index}\r\n${asPrinted(content)}`).toBe(true);
    }
  });

  test('[P2] the tail of a grandchild that outlives the root arrives whole, again and again', async () => {
    const content = numberedLines(20_000);
    writeFileSync(join(directory, 'burst'), content);
    for (let run = 0; run < sized(10, 30); run += 1) {
      // The root's end sends SIGHUP to the foreground group.
      const { recorder } = await pty(`trap '' HUP; cat burst & exit 4`, {
        cwd: directory,
      });
      expect(await recorder.done()).toEqual({ code: 4 });
      expect(recorder.text() === asPrinted(content)).toBe(true);
    }
  });
});

describe('the terminal', () => {
  test('[P13] the child leads its session and is in the foreground of a terminal of the right size', async () => {
    const { child, recorder } = await pty('tty; stty size; echo ready; read x', {
      size: { cols: 133, rows: 41 },
    });
    await recorder.printed('ready');
    expect(recorder.text()).toMatch(/^\/dev\/pts\/\d+\r\n41 133\r\n/);
    expect(readEntry(child.pid)).toMatchObject({ group: child.pid, session: child.pid });
    const other = await pty('exec ps -o pid=,tpgid= -p $$');
    await other.recorder.done();
    expect(other.recorder.text().trim().split(/\s+/).map(Number)).toEqual([
      other.child.pid,
      other.child.pid,
    ]);
  });

  test('[P3] a child on a terminal holds 0, 1 and 2 only, whatever else is open', async () => {
    for (let index = 0; index < 15; index += 1) await pty('read x');
    const { recorder } = await pty('ls -1 /proc/$$/fd');
    await recorder.done();
    expect(recorder.text().trim().split('\r\n')).toEqual(['0', '1', '2']);
  });

  test('[P13] a new size reaches the program', async () => {
    const { child, recorder } = await pty(
      `trap 'stty size' WINCH; echo ready; while :; do read x && exit 0; done`,
    );
    await recorder.printed('ready');
    child.resize({ cols: 200, rows: 50 });
    await recorder.printed('50 200');
    await child.write(Buffer.from('\n'));
    expect(await recorder.done()).toEqual({ code: 0 });
  });

  test('[P14] echo that is switched off is noticed', async () => {
    const { child, recorder } = await pty(
      'echo one; read a; stty -echo; echo two; read b; stty echo; echo three; read c',
    );
    await recorder.printed('one');
    expect(child.echoes()).toBe(true);
    await child.write(Buffer.from('seen\n'));
    await recorder.printed('two');
    expect(child.echoes()).toBe(false);
    await child.write(Buffer.from('secret\n'));
    await recorder.printed('three');
    expect(child.echoes()).toBe(true);
    await child.write(Buffer.from('\n'));
    await recorder.done();
    expect(recorder.text()).toContain('seen');
    expect(recorder.text()).not.toContain('secret');
    expect(child.echoes()).toBe(true);
  });

  test('[P12] the end of input ends a reader, with whatever character means it', async () => {
    const plain = await pty('cat; echo over');
    plain.child.endInput();
    await plain.recorder.done();
    expect(plain.recorder.text()).toContain('over');
    const changed = await pty('stty eof ^X; echo ready; cat; echo over');
    await changed.recorder.printed('ready');
    changed.child.endInput();
    await changed.recorder.done();
    expect(changed.recorder.text()).toContain('over');
  });

  test('[P9] a signal typed at the terminal is the outcome', async () => {
    const { child, recorder } = await pty('exec tail -n +1 -f /etc/passwd');
    await recorder.printed('root');
    await child.write(Buffer.from('\x03'));
    expect(await recorder.done()).toEqual({ signal: 'SIGINT' });
  });

  test('[P18] a program that closes its terminal and opens it again has not ended', async () => {
    const { child, recorder } = await pty(
      'echo one; exec <&- >&- 2>&-; ls -l /proc/$$/fd; exec </dev/tty >/dev/tty 2>&1; echo two; read x; echo $x',
    );
    await recorder.printed('two');
    expect(recorder.calls).toEqual(['output']);
    await child.write(Buffer.from('three\n'));
    expect(await recorder.done()).toEqual({ code: 0 });
    expect(recorder.calls).toEqual(['output', 'exited', 'ended']);
    expect(recorder.text()).toContain('three\r\n');
  });
});

describe('the end', () => {
  test('[P6] a grandchild that holds the terminal delays the end, never the exit', async () => {
    const { child, recorder } = await pty(`trap '' HUP; sleep 1000 & echo early; exit 3`);
    expect(await recorder.exit()).toEqual({ code: 3 });
    expect(recorder.calls).toEqual(['output', 'exited']);
    process.kill(-child.pid, 'SIGKILL');
    await recorder.done();
    expect(recorder.calls).toEqual(['output', 'exited', 'ended']);
  });

  test('[P6] late output of a grandchild on the terminal arrives after the exit', async () => {
    const go = join(directory, 'go');
    const { recorder } = await pty(
      `trap '' HUP; (until [ -e go ]; do :; done; echo late) & echo early; exit 3`,
      {
        cwd: directory,
      },
    );
    await recorder.exit();
    expect(recorder.text()).toBe('early\r\n');
    writeFileSync(go, '');
    await recorder.done();
    expect(recorder.text()).toBe('early\r\nlate\r\n');
    expect(recorder.calls).toEqual(['output', 'exited', 'output', 'ended']);
  });

  test('[P18] a terminal that is opened again in the moment of its end goes on', async () => {
    const { recorder } = await pty(
      `trap '' HUP; (until [ -e go ]; do :; done; echo late) & echo $!; tty; exit 0`,
      { cwd: directory },
    );
    await recorder.exit();
    const [grandchild = '', name = ''] = recorder.text().split('\r\n');
    let device: number | undefined;
    const output = recorder.output.bind(recorder);
    recorder.output = (stream, bytes) => {
      output(stream, bytes);
      device ??= openSync(name, constants.O_RDWR | constants.O_NOCTTY);
    };
    writeFileSync(join(directory, 'go'), '');
    // Without a turn of the event loop: it is to see the last output and the end together.
    while (isAlive(readEntry(Number(grandchild))));
    await recorder.printed('late');
    writeSync(device ?? -1, 'again\n');
    await recorder.printed('again\r\n');
    expect(recorder.calls.includes('ended')).toBe(false);
    closeSync(device ?? -1);
    await recorder.done();
    expect(recorder.calls).toEqual(['output', 'exited', 'output', 'ended']);
  });

  test('[P8] a paused terminal blocks its writer and goes on without a loss', async () => {
    const { child, recorder } = await pty('echo ready; read x; exec seq 1 30000');
    await recorder.printed('ready\r\n');
    child.pause();
    await child.write(Buffer.from('go\n'));
    await turnsUntil(() => blockedInWrite(child.pid) && readEntry(child.pid)?.state === 'S');
    expect(recorder.status).toBeUndefined();
    child.resume();
    await recorder.done();
    const lines = Array.from({ length: 30_000 }, (_, index) => `${index + 1}\r\n`).join('');
    expect(recorder.text() === `ready\r\ngo\r\n${lines}`).toBe(true);
  });

  test('[P7] output is delivered before the exit even while reading is paused', async () => {
    const { child, recorder } = await pty('seq 1 1000');
    child.pause();
    await recorder.done();
    expect(recorder.text()).toBe(
      Array.from({ length: 1000 }, (_, index) => `${index + 1}\r\n`).join(''),
    );
    expect(recorder.calls).toEqual(['output', 'exited', 'ended']);
  });

  test('[P7] a grandchild that never stops printing does not hold the exit back', async () => {
    const { child, recorder } = await pty(`trap '' HUP; yes & exit 7`);
    expect(await recorder.exit()).toEqual({ code: 7 });
    const size = recorder.size;
    await recorder.until(() => recorder.size > size + 200_000);
    process.kill(-child.pid, 'SIGKILL');
    await recorder.done();
  });

  test('[P15] finished, released and failed terminals leave no descriptor behind', async () => {
    const before = openDescriptors();
    for (let run = 0; run < 10; run += 1) {
      const { child, recorder } = await pty('read x');
      if (run % 2) {
        await child.write(Buffer.from('x\n'));
        await recorder.done();
      }
      child.release();
      await expect(pty('true', { cwd: '/nowhere' })).rejects.toThrowError('/nowhere');
    }
    await turnsUntil(() => nursery.reaper.pids().length === 0);
    expect(openDescriptors()).toEqual(before);
  });
});

describe('input', () => {
  test('[P10] a megabyte typed at a raw terminal arrives whole while the event loop goes on', async () => {
    const content = numberedLines(1_048_576);
    const { child, recorder } = await pty(
      `stty raw -echo; echo ready; until [ -e go ]; do :; done; head -c ${content.length} | sha1sum`,
      { cwd: directory },
    );
    await recorder.printed('ready');
    let taken = false;
    const writing = child.write(content).then(() => (taken = true));
    let turns = 0;
    await turnsUntil(() => (turns += 1) > 100);
    expect(taken).toBe(false);
    writeFileSync(join(directory, 'go'), '');
    await writing;
    await recorder.done();
    expect(recorder.text()).toContain(createHash('sha1').update(content).digest('hex'));
  });

  test('[P10] typed lines arrive whole, each echoed', async () => {
    const content = numberedLines(100_000);
    const { child, recorder } = await pty(`head -c ${content.length} >typed; sha1sum typed`, {
      cwd: directory,
    });
    await child.write(content);
    await recorder.done();
    expect(recorder.text()).toContain(createHash('sha1').update(content).digest('hex'));
  });

  test('[P11] a write waits while nobody reads, and is refused as stdin_closed when the terminal ends', async () => {
    const { child, recorder } = await pty('stty raw -echo; echo ready; exec sleep 1000');
    await recorder.printed('ready');
    const waiting = child.write(Buffer.alloc(100_000, 'x'));
    process.kill(child.pid, 'SIGKILL');
    await expect(waiting).rejects.toMatchObject({ code: 'stdin_closed' });
    expect(await recorder.done()).toEqual({ signal: 'SIGKILL' });
    await expect(child.write(Buffer.from('x'))).rejects.toMatchObject({ code: 'stdin_closed' });
    child.endInput();
    child.resize({ cols: 10, rows: 10 });
  });
});
