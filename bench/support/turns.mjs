// Two or more ways of doing the same work, measured in turns: how fast the machine is changes within seconds.

import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as rest } from 'node:timers/promises';
import { median, nowMs, timed } from './statistics.mjs';

/**
 * Each work once in every turn, the first ones not counted. Answers the milliseconds of each by its name. A work that
 * answers a number has measured itself.
 */
export async function inTurns(works, { turns, warmUp = 0, restMs = 0 }) {
  const samples = Object.fromEntries(Object.keys(works).map((name) => [name, []]));
  for (let turn = -warmUp; turn < turns; turn += 1) {
    if (restMs > 0) await rest(restMs);
    for (const [name, work] of Object.entries(works)) {
      let own;
      const tookMs = await timed(async () => (own = await work()));
      if (turn >= 0) samples[name].push(typeof own === 'number' ? own : tookMs);
    }
  }
  return samples;
}

/** The p50 of one work to that of another, with both as a note. */
export function ofOther(samples, name, other = 'raw') {
  const [ours, theirs] = [median(samples[name]), median(samples[other])];
  return {
    value: ours / theirs,
    unit: 'times',
    note: `${ours.toFixed(2)} ms against ${theirs.toFixed(2)} ms ${other}`,
  };
}

/** As a program without Holdfast would: piped output, until everything is closed. */
export function rawSpawn(command) {
  return new Promise((resolve, reject) => {
    const child = spawn('sh', ['-c', command], { stdio: ['ignore', 'pipe', 'pipe'] });
    child.stdout.on('data', () => undefined);
    child.stderr.on('data', () => undefined);
    child.once('error', reject).once('close', () => resolve());
  });
}

/** So many at once. */
export function crowd(count, work) {
  return async () => void (await Promise.all(Array.from({ length: count }, work)));
}

/** A shell that ends by itself when it is told so through a named pipe. */
export class EndOnWord {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
    this.path = join(this.folder, 'fifo');
    execFileSync('mkfifo', [this.path]);
    this.command = `read _ < ${this.path}`;
  }

  /** Milliseconds from the word to the raw event. */
  async rawEvent() {
    const child = spawn('sh', ['-c', this.command], { stdio: ['ignore', 'pipe', 'pipe'] });
    const say = await this.opened();
    await settle();
    return say(new Promise((resolve) => child.once('exit', () => resolve(nowMs()))));
  }

  /** Milliseconds from the word to the answer of a wait that `caller` has parked. */
  async answer({ start, wait, parked }) {
    const { id } = await start({ command: this.command });
    const ended = wait(id).then(() => nowMs());
    const say = await this.opened();
    while ((await parked()) < 1);
    await settle();
    return say(ended);
  }

  remove() {
    rmSync(this.folder, { recursive: true });
  }

  /** Opening it for writing waits until the shell reads. */
  async opened() {
    const file = await open(this.path, 'w');
    return async (ended) => {
      const began = nowMs();
      writeSync(file.fd, '\n');
      const endedMs = await ended;
      await file.close();
      return endedMs - began;
    };
  }
}

/** Whatever the calls before have left to do is done. */
function settle() {
  return rest(5);
}
