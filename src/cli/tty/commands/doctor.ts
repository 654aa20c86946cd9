// `tty doctor`: what terminals and their pictures need on this machine, under agent-tty's names.

import { accessSync, constants, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  findDiskSpace,
  findNode,
  findSystemCalls,
  performChecks,
  withFolder,
  type Check,
} from '../../local/checks.ts';
import { knownCapabilities } from '../capabilities.ts';
import type { TtyAnswer, TtyCommand } from '../command.ts';

const environment: readonly Check[] = [
  { name: 'node-runtime', find: findNode },
  {
    name: 'cwd-access',
    find: ({ cwd }) => {
      accessSync(cwd, constants.R_OK | constants.X_OK);
      return cwd;
    },
  },
  {
    name: 'temp-dir',
    find: async () => {
      await withFolder(tmpdir());
      return tmpdir();
    },
  },
  {
    name: 'home_isolation',
    find: async ({ home }) => {
      const { openHome } = await import('../../../keeper/home.ts');
      return `${openHome(home).folder}, private`;
    },
  },
  {
    name: 'home-writable',
    needs: 'home_isolation',
    find: async ({ home }) => {
      await withFolder(home);
      return 'files can be made';
    },
  },
  {
    name: 'artifact-atomicity',
    needs: 'home-writable',
    find: async ({ home }) => {
      await withFolder(home, checkReplacing);
      return 'a file is replaced as a whole';
    },
  },
  { name: 'event-log-writable', needs: 'home-writable', find: findDiskSpace },
  { name: 'pty-spawn', find: findSystemCalls },
  {
    name: 'socket-viable',
    needs: 'home-writable',
    find: async (caller) => {
      const { version, pid } = await (await caller.host()).health(caller.sees, {});
      return `keeper ${version}, pid ${pid}`;
    },
  },
];

const renderer: readonly Check[] = [
  {
    name: 'xterm_headless_available',
    find: async () => {
      const { openXterm } = await import('../../../screen/emulator/xterm.ts');
      openXterm(80, 24, 0).terminal.dispose();
      return 'can be loaded';
    },
  },
  {
    name: 'screenshot_viable',
    needs: 'xterm_headless_available',
    find: async () => {
      const { Glyphs } = await import('../../../screen/picture/glyphs.ts');
      const { cellWidth, cellHeight } = new Glyphs(1).metrics;
      return `fonts can be read, ${cellWidth}x${cellHeight} pixels a cell`;
    },
  },
];

export const doctor: TtyCommand = {
  name: 'doctor',
  usage: '',
  summary: 'Check what terminals need on this machine.',
  examples: ['holdfast tty doctor'],
  options: {},
  async run(call): Promise<TtyAnswer> {
    call.expect();
    const checks = {
      environment: await performChecks(environment, call.caller),
      renderer: await performChecks(renderer, call.caller),
    };
    const every = [...checks.environment, ...checks.renderer];
    const ok = every.every(({ status }) => status !== 'fail');
    const passed = (name: string): boolean =>
      checks.renderer.some((check) => check.name === name && check.status === 'pass');
    const capabilities = knownCapabilities(call.caller.env['PATH'], {
      screens: passed('xterm_headless_available'),
      pictures: passed('screenshot_viable'),
    });
    const result = { ok, checks, capabilities };
    const lines = every.map(({ name, status, message }) => `${status}\t${name}\t${message}`);
    return { result, lines, exitCode: ok ? 0 : 1 };
  },
};

function checkReplacing(folder: string): void {
  writeFileSync(join(folder, 'next'), 'new', { mode: 0o600 });
  writeFileSync(join(folder, 'file'), 'old', { mode: 0o600 });
  renameSync(join(folder, 'next'), join(folder, 'file'));
  if (readFileSync(join(folder, 'file'), 'utf8') !== 'new')
    throw new Error('A renamed file does not replace another.');
}
