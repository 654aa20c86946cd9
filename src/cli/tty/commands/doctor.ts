// `tty doctor`: what terminals and their pictures need on this machine, checked one by one, in agent-tty's words.

import {
  accessSync,
  constants,
  mkdtempSync,
  readFileSync,
  renameSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Caller } from '../../caller.ts';
import { knownCapabilities } from '../capabilities.ts';
import type { TtyAnswer, TtyCommand } from '../command.ts';

interface Check {
  readonly name: string;
  readonly status: 'pass' | 'fail' | 'skip';
  readonly message: string;
  readonly durationMs: number;
}

interface Test {
  readonly name: string;
  /** Not worth a try when that one failed. */
  readonly needs?: string;
  /** Says what was found; whatever is wrong is thrown. */
  readonly find: (caller: Caller) => string | Promise<string>;
}

/** Below this a few busy sessions fill the disk. */
const LITTLE_ROOM_BYTES = 256 * 1024 * 1024;

const environment: readonly Test[] = [
  { name: 'node-runtime', find: () => process.versions.node },
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
      const folder = mkdtempSync(join(tmpdir(), 'holdfast-doctor-'));
      await rm(folder, { recursive: true });
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
      const folder = mkdtempSync(join(home, 'doctor-'));
      await rm(folder, { recursive: true });
      return 'files can be made';
    },
  },
  {
    name: 'artifact-atomicity',
    needs: 'home-writable',
    find: async ({ home }) => {
      const folder = mkdtempSync(join(home, 'doctor-'));
      try {
        writeFileSync(join(folder, 'next'), 'new', { mode: 0o600 });
        writeFileSync(join(folder, 'file'), 'old', { mode: 0o600 });
        renameSync(join(folder, 'next'), join(folder, 'file'));
        if (readFileSync(join(folder, 'file'), 'utf8') !== 'new')
          throw new Error('A renamed file does not replace another.');
      } finally {
        await rm(folder, { recursive: true });
      }
      return 'a file is replaced as a whole';
    },
  },
  {
    name: 'event-log-writable',
    needs: 'home-writable',
    find: ({ home }) => {
      const { bavail, bsize } = statfsSync(home);
      if (bavail * bsize < LITTLE_ROOM_BYTES) throw new Error('The disk is nearly full.');
      return `${Math.round((bavail * bsize) / 1e6)} MB free`;
    },
  },
  {
    name: 'pty-spawn',
    find: async () => {
      const { loadPosix, posixProblem } = await import('../../../system/posix.ts');
      if (loadPosix() === undefined) throw new Error(posixProblem() ?? 'No system calls.');
      return 'system calls can be made';
    },
  },
  {
    name: 'socket-viable',
    needs: 'home-writable',
    find: async (caller) => {
      const { version, pid } = await (await caller.host()).health(caller.sees, {});
      return `keeper ${version}, pid ${pid}`;
    },
  },
];

const renderer: readonly Test[] = [
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
  flags: {},
  async run(call): Promise<TtyAnswer> {
    call.exactly(0);
    const checks = {
      environment: await performed(environment, call.caller),
      renderer: await performed(renderer, call.caller),
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

async function performed(tests: readonly Test[], caller: Caller): Promise<Check[]> {
  const checks: Check[] = [];
  for (const { name, needs, find } of tests) {
    const begun = performance.now();
    const told = (status: Check['status'], message: string): void => {
      checks.push({ name, status, message, durationMs: Math.round(performance.now() - begun) });
    };
    if (needs !== undefined && checks.some((each) => each.name === needs && each.status !== 'pass'))
      told('skip', `needs ${needs}`);
    else
      try {
        told('pass', await find(caller));
      } catch (error) {
        told('fail', error instanceof Error ? error.message : String(error));
      }
  }
  return checks;
}
