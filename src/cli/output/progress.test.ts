import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import { Output } from './output.ts';
import { Progress } from './progress.ts';

class Stream extends EventEmitter {
  readonly columns = 80;
  readonly isTTY: boolean;
  text = '';

  constructor(isTTY: boolean) {
    super();
    this.isTTY = isTTY;
  }

  write(data: string | Uint8Array): boolean {
    this.text += Buffer.from(data).toString();
    return true;
  }
}

function work({ stdout = true, stderr = true, json = false }): string {
  const streams = { stdout: new Stream(stdout), stderr: new Stream(stderr) };
  const out = new Output({ ...streams, json, raw: false, colour: true });
  let nowMs = 0;
  const progress = new Progress(
    out,
    (done, all) => `${done} of ${all} deleted`,
    () => nowMs,
  );
  for (let done = 0; done <= 10; done += 1) {
    progress.at(done, 10);
    nowMs += 100;
  }
  out.endLive();
  return streams.stdout.text + streams.stderr.text;
}

describe('progress', () => {
  it('[C90] begins after half a second, changes in one line of a terminal, and leaves nothing there', () => {
    const shown = work({});
    // oxlint-disable-next-line no-control-regex
    const lines = shown.split('\r\x1b[K').map((line) => line.replaceAll(/\x1b\[\d+m/g, ''));
    expect(lines).toEqual([
      '',
      '5 of 10 deleted (50 %)',
      '7 of 10 deleted (70 %)',
      '9 of 10 deleted (90 %)',
      '',
    ]);
  });

  it('[C90] is not shown when anything is piped, nor with --json', () => {
    expect([work({ stdout: false }), work({ stderr: false }), work({ json: true })]).toEqual([
      '',
      '',
      '',
    ]);
  });
});
