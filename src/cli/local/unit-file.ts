// The systemd user unit of a home: its text, where it lies, and whether it is ours.

import { lstatSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { HoldfastError } from '../../protocol/errors.ts';

/** The first line of every unit that we write: without it a file is not ours, and stays as it is. */
const MARK = '# Made by "holdfast service install"; "holdfast service remove" removes it.';
const HOME_LINE = '# Home: ';
/** How long systemd waits for the end beyond the grace period: the keeper kills, records and exits. */
const STOP_MARGIN_S = 30;

export interface UnitPlan {
  readonly home: string;
  /** Node and the program, which `up` follows. */
  readonly program: readonly string[];
  readonly path: string | undefined;
  readonly graceMs: number;
}

export function unitPath(name: string, env: NodeJS.ProcessEnv): string {
  const given = env['XDG_CONFIG_HOME'] ?? '';
  const config = isAbsolute(given) ? given : join(homedir(), '.config');
  return join(config, 'systemd', 'user', `${name}.service`);
}

/**
 * Delegate: limits of memory and processes need cgroups of our own. KillMode: SIGTERM goes to the keeper, which gives
 * every process its grace period. OOMPolicy: the kernel ending one command ends nothing else. Exit codes 2 and 4 are wrong
 * settings and a second keeper: another start would fail in the same way.
 */
export function unitText({ home, program, path, graceMs }: UnitPlan): string {
  const seconds = Math.ceil(graceMs / 1000) + STOP_MARGIN_S;
  return [
    MARK,
    `${HOME_LINE}${home}`,
    '[Unit]',
    'Description=Holdfast: runs commands and terminals, and keeps their output',
    '',
    '[Service]',
    'Type=exec',
    `Environment=${quoted(`HOLDFAST_HOME=${home}`)}`,
    ...(path === undefined ? [] : [`Environment=${quoted(`PATH=${path}`)}`]),
    // A dollar sign begins a variable here, and only here.
    `ExecStart=${[...program, 'up'].map((word) => quoted(word).replaceAll('$', '$$$$')).join(' ')}`,
    'Restart=on-failure',
    'RestartSec=1',
    'RestartPreventExitStatus=2 4',
    'Delegate=yes',
    'KillMode=mixed',
    `TimeoutStopSec=${seconds}`,
    'OOMPolicy=continue',
    '',
    '[Install]',
    'WantedBy=default.target',
    '',
  ].join('\n');
}

/** As systemd reads a word in double quotes; "%" begins a specifier. */
function quoted(word: string): string {
  // oxlint-disable-next-line no-control-regex
  if (/[\x00-\x1f\x7f]/.test(word))
    throw new HoldfastError(
      'unsupported',
      `A unit cannot name ${JSON.stringify(word)}: it has a control character.`,
    );
  return `"${word.replaceAll(/["\\]/g, '\\$&').replaceAll('%', '%%')}"`;
}

export interface FoundUnit {
  readonly isOurs: boolean;
  readonly home: string | undefined;
  readonly text: string;
}

/** Undefined when there is no such file. A link is not ours: systemd makes some, and so do people. */
export function findUnit(file: string): FoundUnit | undefined {
  const entry = lstatSync(file, { throwIfNoEntry: false });
  if (!entry) return undefined;
  if (!entry.isFile()) return { isOurs: false, home: undefined, text: '' };
  const text = readFileSync(file, 'utf8');
  const [first, second = ''] = text.split('\n');
  const isOurs = first === MARK && second.startsWith(HOME_LINE);
  return { isOurs, home: isOurs ? second.slice(HOME_LINE.length) : undefined, text };
}

/** In one step: systemd may be reading it. */
export function writeUnit(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  const next = `${file}.${process.pid}.next`;
  writeFileSync(next, text, { mode: 0o644, flag: 'wx' });
  renameSync(next, file);
}

/** The words of ExecStart that are files. */
export function programIn(text: string): string[] {
  const [, line = ''] = /^ExecStart=(.*)$/m.exec(text) ?? [];
  return Array.from(line.matchAll(/"((?:[^"\\]|\\.)*)"/g), ([, word = '']) =>
    word.replaceAll(/\\(.)/g, '$1').replaceAll('%%', '%').replaceAll('$$', '$'),
  ).slice(0, -1);
}
