import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, describe, expect, test } from 'vitest';

import {
  numberedLines,
  openDescriptors,
  Recorder,
  shellPlan,
  turnsUntil,
} from '../../../test/support/recorder.ts';
import type { LaunchPlan } from '../../protocol/process.ts';
import type { Child } from './child.ts';
import { startNodeChild } from './node-child.ts';
import { readEntry } from '../../system/proc-table.ts';

const started: { child: Child; recorder: Recorder }[] = [];

async function start(
  script: string,
  options: Partial<LaunchPlan> = {},
): Promise<{ child: Child; recorder: Recorder }> {
  const recorder = new Recorder();
  const child = await startNodeChild(shellPlan(script, options));
  child.listen(recorder);
  started.push({ child, recorder });
  return { child, recorder };
}

afterEach(async () => {
  for (const { child } of started.splice(0)) {
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // Has ended.
    }
    child.release();
    await turnsUntil(() => readEntry(child.pid) === undefined);
  }
});

describe('the fallback through Node', () => {
  test('[P17] output, exit and end are reported as on real pipes', async () => {
    for (let run = 0; run < 20; run += 1) {
      const { recorder } = await start('seq 1 20000; echo problem >&2; exit 3', {
        streams: 'separate',
      });
      expect(await recorder.done()).toEqual({ code: 3 });
      expect(recorder.text('stdout')).toBe(
        Array.from({ length: 20_000 }, (_, index) => `${index + 1}\n`).join(''),
      );
      expect(recorder.text('stderr')).toBe('problem\n');
      expect(recorder.calls.slice(1).toSorted()).toEqual(['ended', 'exited']);
    }
  });

  test('[P17] both streams of a merged child are reported as merged', async () => {
    const { recorder } = await start('echo a; echo b >&2');
    await recorder.done();
    expect(recorder.text('merged').split('\n').toSorted()).toEqual(['', 'a', 'b']);
  });

  test('[P17] an exit is reported before late output of a grandchild, with what was printed before it', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'holdfast-node-'));
    const { recorder } = await start(
      '(until [ -e go ]; do :; done; echo late) & echo early; exit 3',
      {
        cwd: directory,
      },
    );
    expect(await recorder.exit()).toEqual({ code: 3 });
    expect(recorder.text()).toBe('early\n');
    writeFileSync(join(directory, 'go'), '');
    await recorder.done();
    expect(recorder.calls).toEqual(['output', 'exited', 'output', 'ended']);
    expect(recorder.text()).toBe('early\nlate\n');
    rmSync(directory, { recursive: true });
  });

  test('[P17] a pause holds output back, an exit brings it, nothing is lost', async () => {
    const { child, recorder } = await start('seq 1 2000; kill -TERM $$');
    child.pause();
    expect(await recorder.exit()).toEqual({ signal: 'SIGTERM' });
    child.resume();
    await recorder.done();
    expect(recorder.text()).toBe(
      Array.from({ length: 2000 }, (_, index) => `${index + 1}\n`).join(''),
    );
  });

  test('[P17] input arrives whole, and a write that nobody reads is refused', async () => {
    const content = numberedLines(1_048_576);
    const { child, recorder } = await start('cat', { stdin: 'pipe' });
    await child.write(content);
    child.endInput();
    await recorder.done();
    expect(recorder.bytes().equals(content)).toBe(true);
    await expect(child.write(Buffer.from('x'))).rejects.toMatchObject({ code: 'stdin_closed' });
    const none = await start('true');
    await expect(none.child.write(Buffer.from('x'))).rejects.toMatchObject({
      code: 'stdin_closed',
    });
  });

  test('[P17] a child leads its own session and group and is started under the given name', async () => {
    const { child, recorder } = await start('echo $0; read x', {
      stdin: 'pipe',
      argv: ['renamed', '-c', 'echo $0; read x'],
    });
    await recorder.printed('\n');
    expect(recorder.text()).toBe('renamed\n');
    expect(readEntry(child.pid)).toMatchObject({ group: child.pid, session: child.pid });
  });

  test('[P17] it has no terminals, and says so', async () => {
    await expect(start('true', { streams: 'pty' })).rejects.toMatchObject({ code: 'unsupported' });
    const { child } = await start('true');
    expect(() => child.resize({ cols: 1, rows: 1 })).toThrowError(
      expect.objectContaining({ code: 'not_a_terminal' }),
    );
  });

  test('[P17] release closes every descriptor and nothing is reported afterwards', async () => {
    const before = openDescriptors();
    const { child, recorder } = await start('echo a; sleep 1000', {
      stdin: 'pipe',
      streams: 'separate',
    });
    await recorder.printed('a');
    child.release();
    process.kill(-child.pid, 'SIGKILL');
    await turnsUntil(() => readEntry(child.pid) === undefined);
    expect(openDescriptors()).toEqual(before);
    expect(recorder.calls).toEqual(['output']);
  });
});
