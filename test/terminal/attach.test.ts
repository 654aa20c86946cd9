// A person at a terminal: `holdfast attach` runs in a terminal of this test's own host, and what the person sees and types
// goes through it.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { HostApi } from '../../src/protocol/host-api.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { Keyboard } from '../../src/host/terminal/keyboard.ts';
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

interface Terminal {
  /** Where the terminal is. */
  readonly far: HostApi;
  readonly id: string;
  readonly folder: string;
}

interface Scene extends Terminal {
  /** Where the person sits. */
  readonly near: HostApi;
  readonly seat: string;
}

async function openTerminal(): Promise<Terminal> {
  const folder = temporaryFolder();
  const far = await overKeeper({ folder });
  const id = await startProcess(far, {
    argv: ['/bin/bash'],
    streams: 'pty',
    marks: true,
    env: { PS1: '$ ', HOME: folder },
  });
  await far.run(OWNER, { id, command: 'echo before' });
  return { far, id, folder };
}

async function attachTo(terminal: Terminal, ...options: string[]): Promise<Scene> {
  const { id, folder } = terminal;
  const near = await inProcess();
  const seat = await startProcess(near, {
    argv: [process.execPath, main, 'attach', id, '--home', folder, ...options],
    streams: 'pty',
    size: { cols: 91, rows: 33 },
  });
  return { ...terminal, near, seat };
}

async function runAttached(...options: string[]): Promise<Scene> {
  const scene = await attachTo(await openTerminal(), ...options);
  await waitFor(scene.near, scene.seat, { kind: 'text', text: 'before' });
  return scene;
}

const press = (scene: Scene, keys: string): Promise<unknown> =>
  scene.near.write(OWNER, { id: scene.seat, data: Buffer.from(keys) });

describe('attach', () => {
  it('[TM38] shows the screen, types, resizes, and leaves it running', async () => {
    const scene = await runAttached();
    const { far, id, near, seat } = scene;
    await press(scene, 'stty size; echo pers""on\r');
    await waitFor(near, seat, { kind: 'text', text: 'person' });
    expect(await outputText(near, seat)).toContain('33 91');
    await near.resize(OWNER, { id: seat, size: { cols: 70, rows: 20 } });
    while ((await far.get(OWNER, { id })).size?.cols !== 70);
    // The agent cannot type meanwhile; it can read.
    const refused = await failure(far.run(OWNER, { id, command: 'echo agent' }));
    expect(refused.code).toBe('keyboard_held');
    await press(scene, '\x1d');
    const { process } = await waitFor(near, seat, { kind: 'closed' });
    expect(process.outcome).toEqual({ kind: 'exit', code: 0 });
    expect(await outputText(near, seat)).toContain(`detached from ${id}, which keeps running`);
    expect((await far.get(OWNER, { id })).size).toEqual({ cols: 70, rows: 20 });
    expect(await far.run(OWNER, { id, command: 'echo agent' })).toMatchObject({ completed: true });
  });

  it('[TM38] read-only types and resizes nothing, and the end of the terminal ends it', async () => {
    const scene = await runAttached('--read-only');
    const { far, id, near, seat } = scene;
    await press(scene, 'echo no""body\r');
    await far.run(OWNER, { id, command: 'echo ag""ent' });
    await waitFor(near, seat, { kind: 'text', text: 'agent' });
    await far.run(OWNER, { id, command: 'exit 4' });
    await waitFor(near, seat, { kind: 'closed' });
    expect(await outputText(far, id)).not.toContain('nobody');
    expect((await far.get(OWNER, { id })).size).toEqual({ cols: 80, rows: 24 });
  });

  it('[TM130] who comes to a full-screen program finds the shell behind it again', async () => {
    const terminal = await openTerminal();
    const { far, id } = terminal;
    const page = "printf '\\e[?1049h\\e[?1002h%s page' the; read -r";
    await far.write(OWNER, { id, data: Buffer.from(`${page}\r`) });
    await waitFor(far, id, { kind: 'text', text: 'the page' });
    const scene = await attachTo(terminal);
    const { near, seat } = scene;
    await waitFor(near, seat, { kind: 'text', text: 'the page' });
    await press(scene, '\x1d');
    await waitFor(near, seat, { kind: 'closed' });
    // oxlint-disable-next-line no-control-regex
    const both = /before[^]*\x1b\[\?1049h[^]*the page[^]*\x1b\[\?1002h/;
    expect(await outputText(near, seat)).toMatch(both);
  });

  it('[TM131] a second person learns how to take over; the first learns that it lost the keyboard', async () => {
    const first = await runAttached();
    const { far, id } = first;
    expect(await outputText(first.near, first.seat)).toContain(`Ctrl-] detaches from ${id}`);
    const refused = await attachTo(first);
    await waitFor(refused.near, refused.seat, { kind: 'closed' });
    expect(await outputText(refused.near, refused.seat)).toContain('attach --steal');
    const second = await attachTo(first, '--steal');
    await waitFor(second.near, second.seat, { kind: 'text', text: 'before' });
    // It may have noticed already, and be gone.
    await Promise.allSettled([press(first, 'echo of the fir""st\r')]);
    await waitFor(first.near, first.seat, { kind: 'closed' });
    expect(await outputText(first.near, first.seat)).toContain('someone else took the keyboard');
    await press(second, 'echo of the sec""ond\r');
    await waitFor(second.near, second.seat, { kind: 'text', text: 'of the second' });
    expect(await outputText(far, id)).not.toContain('of the first');
    await press(second, '\x1d');
    await waitFor(second.near, second.seat, { kind: 'closed' });
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
