// A person at a terminal: `holdfast attach` runs in a terminal of this test's own host, and what the person sees and types
// goes through it.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { HostApi } from '../../src/protocol/host-api.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { Keyboard } from '../../src/host/keyboard.ts';
import {
  failure,
  inProcess,
  outputText,
  overKeeper,
  OWNER,
  startProcess,
  temporaryFolder,
  waitFor,
} from '../support/hosts.ts';

const main = join(fileURLToPath(new URL('../..', import.meta.url)), 'dist/cli/main.js');

interface Scene {
  /** Where the terminal is. */
  readonly far: HostApi;
  readonly id: string;
  /** Where the person sits. */
  readonly near: HostApi;
  readonly seat: string;
}

async function sitDown(...options: string[]): Promise<Scene> {
  const folder = temporaryFolder();
  const far = await overKeeper({ folder });
  const id = await startProcess(far, {
    argv: ['/bin/bash'],
    streams: 'pty',
    marks: true,
    env: { PS1: '$ ', HOME: folder },
  });
  await far.run(OWNER, { id, command: 'echo before' });
  const near = await inProcess();
  const seat = await startProcess(near, {
    argv: [process.execPath, main, 'attach', id, '--home', folder, ...options],
    streams: 'pty',
    size: { cols: 91, rows: 33 },
  });
  await waitFor(near, seat, { kind: 'text', text: 'before' });
  return { far, id, near, seat };
}

const press = (scene: Scene, keys: string): Promise<unknown> =>
  scene.near.write(OWNER, { id: scene.seat, data: Buffer.from(keys) });

describe('attach', () => {
  it('[TM38] shows the screen, types, resizes, and leaves it running', async () => {
    const scene = await sitDown();
    const { far, id, near, seat } = scene;
    await press(scene, 'stty size; echo pers""on\r');
    await waitFor(near, seat, { kind: 'text', text: 'person' });
    expect(await outputText(near, seat)).toContain('33 91');
    // The prompt has been drawn: what comes next is the new size.
    await waitFor(far, id, { kind: 'silence', forMs: 200 });
    const { seq: after } = await far.get(OWNER, { id });
    await near.resize(OWNER, { id: seat, size: { cols: 70, rows: 20 } });
    await waitFor(far, id, { kind: 'growth', after });
    // The agent cannot type meanwhile; it can read.
    const refused = await failure(far.run(OWNER, { id, command: 'echo agent' }));
    expect(refused.code).toBe('keyboard_held');
    await press(scene, '\x1d');
    const { process } = await waitFor(near, seat, { kind: 'closed' });
    expect(process.outcome).toEqual({ kind: 'exit', code: 0 });
    expect(await outputText(near, seat)).toContain(`left ${id}, which goes on`);
    expect((await far.get(OWNER, { id })).size).toEqual({ cols: 70, rows: 20 });
    expect(await far.run(OWNER, { id, command: 'echo agent' })).toMatchObject({ completed: true });
  });

  it('[TM38] read-only types and resizes nothing, and the end of the terminal ends it', async () => {
    const scene = await sitDown('--read-only');
    const { far, id, near, seat } = scene;
    await press(scene, 'echo no""body\r');
    await far.run(OWNER, { id, command: 'echo ag""ent' });
    await waitFor(near, seat, { kind: 'text', text: 'agent' });
    await far.run(OWNER, { id, command: 'exit 4' });
    await waitFor(near, seat, { kind: 'closed' });
    expect(await outputText(far, id)).not.toContain('nobody');
    expect((await far.get(OWNER, { id })).size).toEqual({ cols: 80, rows: 24 });
  });

  it('[TM39] a keyboard is held against others until it is given back or its time is over', () => {
    const clock = new FakeClock();
    const keyboard = new Keyboard(clock);
    keyboard.admit(undefined);
    keyboard.take('ann', 1000);
    keyboard.admit('ann');
    expect(() => keyboard.admit(undefined)).toThrow('held by ann');
    expect(() => keyboard.take('bob', 1000)).toThrow('held by ann');
    clock.advance(999);
    expect(() => keyboard.admit('bob')).toThrow('held by ann');
    clock.advance(1);
    keyboard.take('bob', 1000);
    keyboard.take('bob', 0);
    keyboard.admit('ann');
  });
});
