import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
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
import { startPipeChild } from './pipe-child.ts';
import { startPtyChild } from './pty-child.ts';
import { readEntry } from '../../system/proc-table.ts';

let nursery: Nursery;
let directory: string;

beforeEach(() => {
  nursery = new Nursery();
  directory = mkdtempSync(join(tmpdir(), 'holdfast-pipe-'));
});
afterEach(async () => {
  await nursery.endAll();
  rmSync(directory, { recursive: true });
});

const pipe = (script: string, options = {}) =>
  nursery.start(startPipeChild, shellPlan(script, options));

describe('completeness', () => {
  test.each([36, 10_000, 131_072])(
    '[P1] a burst of %i bytes before the exit arrives whole, again and again',
    async (size) => {
      const content = numberedLines(size);
      const file = join(directory, 'burst');
      writeFileSync(file, content);
      for (let run = 0; run < sized(15, 50); run += 1) {
        const { child, recorder } = await nursery.start(startPipeChild, planOf(['/bin/cat', file]));
        expect(await recorder.done()).toEqual({ code: 0 });
        expect(recorder.bytes('merged').equals(content)).toBe(true);
        child.release();
      }
    },
  );

  test('[P1] two streams arrive whole and apart', async () => {
    const content = numberedLines(200_000);
    writeFileSync(join(directory, 'burst'), content);
    const { recorder } = await pipe('cat burst & cat burst >&2; wait', {
      streams: 'separate',
      cwd: directory,
    });
    await recorder.done();
    expect(recorder.bytes('stdout').equals(content)).toBe(true);
    expect(recorder.bytes('stderr').equals(content)).toBe(true);
    expect(recorder.bytes('merged').length).toBe(0);
  });

  test('[P1] many children at once share one read buffer and mix nothing up', async () => {
    const runs = await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        pipe(`i=0; while [ $i -lt 300 ]; do echo "child ${index} line $i"; i=$((i+1)); done`),
      ),
    );
    for (const [index, { recorder }] of runs.entries()) {
      await recorder.done();
      const lines = Array.from({ length: 300 }, (_, line) => `child ${index} line ${line}\n`);
      expect(recorder.text()).toBe(lines.join(''));
    }
  });
});

describe('descriptors', () => {
  test('[P3] a child holds 0, 1 and 2 only, whatever else is open', async () => {
    const others = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        nursery.start(
          index % 2 ? startPtyChild : startPipeChild,
          shellPlan('read x', { streams: index % 2 ? 'pty' : 'separate', stdin: 'pipe' }),
        ),
      ),
    );
    expect(others.length).toBe(20);
    for (const streams of ['merged', 'separate'] as const) {
      for (const stdin of ['none', 'pipe'] as const) {
        const { recorder } = await pipe('ls /proc/$$/fd', { streams, stdin });
        await recorder.done();
        expect(recorder.text().trim().split('\n')).toEqual(['0', '1', '2']);
      }
    }
  });

  test('[P4] merged output keeps the order in which it was printed', async () => {
    const { recorder } = await pipe(
      'i=0; while [ $i -lt 2000 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done',
    );
    await recorder.done();
    const lines = Array.from({ length: 2000 }, (_, index) => `o${index}\ne${index}\n`);
    expect(recorder.text('merged')).toBe(lines.join(''));
  });

  test.each(['merged', 'separate'] as const)(
    '[P5] /dev/stderr and /dev/stdout can be opened (%s)',
    async (streams) => {
      const { recorder } = await pipe('echo one > /dev/stdout; echo two > /dev/stderr', {
        streams,
      });
      expect(await recorder.done()).toEqual({ code: 0 });
      expect(recorder.text()).toContain('one\n');
      expect(recorder.text(streams === 'merged' ? 'merged' : 'stderr')).toContain('two\n');
    },
  );

  // An output that has ended is closed when the turn is over in which that was reported.
  test('[P15] a released or finished child leaves no descriptor behind', async () => {
    await new Promise(setImmediate);
    const before = openDescriptors();
    for (let run = 0; run < 20; run += 1) {
      const { child, recorder } = await pipe('cat', { streams: 'separate', stdin: 'pipe' });
      if (run % 2) {
        child.endInput();
        await recorder.done();
      }
      child.release();
      if (run % 2 === 0) process.kill(-child.pid, 'SIGKILL');
    }
    await turnsUntil(() => nursery.reaper.pids().length === 0);
    await new Promise(setImmediate);
    expect(openDescriptors()).toEqual(before);
  });

  test('[P15] nothing is reported after release', async () => {
    const { child, recorder } = await pipe('echo a; read x; echo b', { stdin: 'pipe' });
    await recorder.printed('a');
    child.release();
    await turnsUntil(() => nursery.reaper.pids().length === 0);
    expect(recorder.calls).toEqual(['output']);
  });

  test('[P15] release from inside a call of the listener stops everything at once', async () => {
    const { child, recorder } = await pipe('seq 1 20000', {});
    const output = recorder.output.bind(recorder);
    recorder.output = (stream, bytes) => {
      output(stream, bytes);
      child.release();
    };
    await turnsUntil(() => nursery.reaper.pids().length === 0);
    expect(recorder.chunks.length).toBeLessThanOrEqual(1);
    expect(recorder.calls).toEqual(recorder.chunks.length ? ['output'] : []);
  });
});

describe('the end', () => {
  test('[P6] an exit is reported before the late output of a grandchild, and the end after it', async () => {
    const { child, recorder } = await pipe(
      'exec 3<&0; (read x <&3; echo late) & echo early; exit 3',
      {
        stdin: 'pipe',
      },
    );
    expect(await recorder.exit()).toEqual({ code: 3 });
    expect(recorder.text()).toBe('early\n');
    expect(recorder.calls).toEqual(['output', 'exited']);
    await child.write(Buffer.from('go\n'));
    await recorder.done();
    expect(recorder.text()).toBe('early\nlate\n');
    expect(recorder.calls).toEqual(['output', 'exited', 'output', 'ended']);
  });

  test('[P6] streams that end before the program are reported as ended once', async () => {
    const { child, recorder } = await pipe('exec >&- 2>&-; read x', {
      stdin: 'pipe',
      streams: 'separate',
    });
    await recorder.until(() => recorder.calls.includes('ended'));
    expect(recorder.calls).toEqual(['ended']);
    child.endInput();
    expect(await recorder.done()).toEqual({ code: 1 });
    expect(recorder.calls).toEqual(['ended', 'exited']);
  });

  test('[P7] exit and end come in the same turn when nobody else holds the pipes', async () => {
    const { recorder } = await pipe('seq 1 1000', { streams: 'separate' });
    await recorder.exit();
    expect(recorder.calls.filter((what) => what !== 'output').length).toBe(2);
  });

  test('[P7] output is delivered before the exit even while reading is paused, and none of it twice', async () => {
    const { child, recorder } = await pipe(
      'seq 1 5000; exec 3<&0; (read x <&3; seq 5001 9000) & exit 0',
      { stdin: 'pipe' },
    );
    child.pause();
    await recorder.exit();
    const first = Array.from({ length: 5000 }, (_, index) => `${index + 1}\n`).join('');
    expect(recorder.text()).toBe(first);
    await child.write(Buffer.from('go\n'));
    child.resume();
    await recorder.done();
    expect(recorder.text()).toBe(
      Array.from({ length: 9000 }, (_, index) => `${index + 1}\n`).join(''),
    );
  });

  test('[P7] a grandchild that never stops printing does not hold the exit back', async () => {
    const { recorder } = await pipe('yes & exit 7');
    expect(await recorder.exit()).toEqual({ code: 7 });
    expect(recorder.calls.includes('ended')).toBe(false);
    const size = recorder.size;
    await recorder.until(() => recorder.size > size + 1_000_000);
  });

  test('[P8] a paused child blocks when its pipe is full, and goes on without a loss', async () => {
    const { child, recorder } = await pipe('echo ready; read x; exec seq 1 100000', {
      stdin: 'pipe',
    });
    await recorder.printed('ready\n');
    child.pause();
    await child.write(Buffer.from('go\n'));
    await turnsUntil(() => blockedInWrite(child.pid));
    expect(recorder.text()).toBe('ready\n');
    expect(recorder.status).toBeUndefined();
    child.resume();
    await recorder.done();
    const lines = Array.from({ length: 100_000 }, (_, index) => `${index + 1}\n`).join('');
    expect(recorder.text()).toBe(`ready\n${lines}`);
  });

  test('[P8] pausing after every chunk, from inside the call, loses nothing', async () => {
    const { child, recorder } = await pipe('seq 1 400000');
    const output = recorder.output.bind(recorder);
    let pauses = 0;
    recorder.output = (stream, bytes) => {
      output(stream, bytes);
      child.pause();
      pauses += 1;
      setImmediate(() => child.resume());
    };
    await recorder.done();
    expect(pauses).toBeGreaterThan(3);
    expect(recorder.text()).toBe(
      Array.from({ length: 400_000 }, (_, index) => `${index + 1}\n`).join(''),
    );
  });

  test.each([
    ['exit 0', { code: 0 }],
    ['exit 255', { code: 255 }],
    ['exit 137', { code: 137 }],
    ['kill -TERM $$', { signal: 'SIGTERM' }],
    ['kill -KILL $$', { signal: 'SIGKILL' }],
    ['kill -ABRT $$', { signal: 'SIGABRT' }],
    ['kill -USR1 $$', { signal: 'SIGUSR1' }],
    ['kill -40 $$', { signal: 'SIGRTMIN+6' }],
  ])('[P9] "%s" is reported as what it was', async (script, status) => {
    const { recorder } = await pipe(`ulimit -c 0; ${script}`);
    expect(await recorder.done()).toEqual(status);
  });

  test('[P16] a child leads its own session and group, with no signal ignored or blocked', async () => {
    const { child, recorder } = await pipe('exec cat /proc/self/status');
    await recorder.exit();
    expect(recorder.text()).toMatch(/^SigBlk:\s0+$/m);
    expect(recorder.text()).toMatch(/^SigIgn:\s0+$/m);
    const other = await pipe('read x', { stdin: 'pipe' });
    expect(readEntry(other.child.pid)).toMatchObject({
      group: other.child.pid,
      session: other.child.pid,
    });
    expect(child.pid).not.toBe(other.child.pid);
  });
});

describe('input', () => {
  test('[P10] a megabyte of input arrives whole, and the write ends only when it was taken', async () => {
    const content = numberedLines(1_048_576);
    const { child, recorder } = await pipe('read x; echo ready; exec cat', { stdin: 'pipe' });
    let taken = false;
    const writing = child
      .write(Buffer.concat([Buffer.from('go\n'), content]))
      .then(() => (taken = true));
    await recorder.printed('ready\n');
    child.pause();
    // cat cannot print, so it stops reading, so the rest of the input has nowhere to go.
    await turnsUntil(() => blockedInWrite(child.pid));
    expect(taken).toBe(false);
    child.resume();
    await writing;
    child.endInput();
    expect(await recorder.done()).toEqual({ code: 0 });
    expect(recorder.bytes().subarray('ready\n'.length).equals(content)).toBe(true);
  });

  test('[P12] the end of input comes after everything written before', async () => {
    const { child, recorder } = await pipe('cat', { stdin: 'pipe' });
    const content = numberedLines(300_000);
    const writing = child.write(content);
    child.endInput();
    await writing;
    await recorder.done();
    expect(recorder.bytes().equals(content)).toBe(true);
    await expect(child.write(Buffer.from('x'))).rejects.toMatchObject({ code: 'stdin_closed' });
  });

  test('[P11] a write that nobody will read is refused as stdin_closed, also one that was waiting', async () => {
    const { child, recorder } = await pipe('exec 0<&-; echo closed; exec sleep 1000', {
      stdin: 'pipe',
    });
    const waiting = child.write(Buffer.alloc(1_000_000));
    await Promise.all([
      expect(waiting).rejects.toMatchObject({ code: 'stdin_closed' }),
      recorder.printed('closed'),
    ]);
    await expect(child.write(Buffer.from('x'))).rejects.toMatchObject({ code: 'stdin_closed' });
  });

  test('[P11] without a pipe there is nothing to write to, and the null device to read from', async () => {
    const { child, recorder } = await pipe('cat; readlink /proc/$$/fd/0');
    await expect(child.write(Buffer.from('x'))).rejects.toMatchObject({ code: 'stdin_closed' });
    await recorder.done();
    expect(recorder.text()).toBe('/dev/null\n');
  });

  test('[P13] a child on pipes has no size and always counts as echoing', async () => {
    const { child } = await pipe('read x', { stdin: 'pipe' });
    expect(() => child.resize({ cols: 1, rows: 1 })).toThrowError(
      expect.objectContaining({ code: 'not_a_terminal' }),
    );
    expect(child.echoes()).toBe(true);
  });
});
