// Finds out who reads the input of a terminal: a shell, a program that leads to one, or something else. The kernel says
// which process group is in the foreground; the rest is in /proc. The answer may be out of date when it is used, but
// all of it was true at one moment.

import {
  argumentsOf,
  childrenOf,
  inputOf,
  isAlive,
  isShortage,
  nameOf,
  readEntry,
  type ProcessEntry,
} from '../../system/proc-table.ts';

/** What it reads from /proc. */
export interface ForegroundTable {
  readonly readEntry: (pid: number) => ProcessEntry | undefined;
  readonly childrenOf: (pid: number) => number[];
  readonly argumentsOf: (pid: number) => string[];
  readonly nameOf: (pid: number) => string;
  readonly inputOf: (pid: number) => string | undefined;
}

const system: ForegroundTable = { readEntry, childrenOf, argumentsOf, nameOf, inputOf };

/** How a shell writes the exit status of the last command. */
export type Language = 'posix' | 'fish' | 'csh';

export type Foreground =
  | {
      /** An interactive shell. */
      readonly kind: 'shell';
      readonly name: string;
      readonly pid: number;
      readonly language: Language;
      /** Changes when exec replaces the program. */
      readonly identity: string;
      /** It sleeps: in a line editor it waits for a key. */
      readonly sleeps: boolean;
      /** It has its own terminal behind another program, whose mode we cannot see. */
      readonly behind?: true;
    }
  /** A shell is expected behind it that cannot be seen from here. */
  | { readonly kind: 'remote'; readonly name: string; readonly pid: number }
  | {
      /** A shell may appear, but has not yet. */
      readonly kind: 'soon';
      readonly name: string;
      readonly pid: number;
      /** What it runs now. */
      readonly runs?: number;
    }
  | { readonly kind: 'other'; readonly name: string; readonly pid: number }
  /** The kernel does not say. */
  | { readonly kind: 'unseen' };

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '));
const SHELLS = words(
  'sh bash rbash dash ash ksh ksh93 rksh mksh lksh pdksh oksh loksh zsh rzsh yash posh hush fish csh tcsh',
);
/** Programs that start a shell on this machine, where we can see it. */
const LAUNCHERS = words(
  'su sudo doas runuser login sg newgrp env nice ionice chrt taskset nohup setsid stdbuf time timeout flock script unshare nsenter chroot setpriv bwrap firejail fakeroot proot systemd-run dbus-run-sessi strace ltrace',
);
/** Programs that lead to a shell on another machine or in a container. */
const REMOTES = words(
  'ssh slogin autossh mosh mosh-client telnet rlogin docker podman nerdctl kubectl oc lxc incus machinectl vagrant adb limactl multipass picocom minicom',
);
/** How far below a launcher a shell is searched. */
const MAX_DEPTH = 4;
/** Options of shells that take the next word. */
const TAKES_WORD = /^(?:[-+][oO]|--rcfile|--init-file|-C|--init-command|-d|-D)$/;

/** The reader of a terminal, by its foreground group. */
export function foregroundOf(
  groupNow: () => number | undefined,
  table: ForegroundTable = system,
): Foreground {
  const group = groupNow();
  if (group === undefined || group <= 0) return { kind: 'unseen' };
  try {
    const found = looked(group, 0, table);
    if (groupNow() === group) return found;
  } catch (error) {
    // No free descriptor: that says nothing about the reader. The next look may succeed.
    if (!isShortage(error)) throw error;
  }
  return { kind: 'soon', name: '', pid: group };
}

interface Seen {
  readonly entry: ProcessEntry;
  readonly argv: readonly string[];
  readonly name: string;
  readonly input: string | undefined;
  readonly depth: number;
}

function looked(pid: number, depth: number, table: ForegroundTable): Foreground {
  const argv = table.argumentsOf(pid);
  const name = programOf(table.nameOf(pid), argv);
  const input = table.inputOf(pid);
  const entry = table.readEntry(pid);
  if (!isAlive(entry)) return { kind: 'other', name: '', pid };
  // A fork still looks like its parent. A program whose arguments are missing or have changed has exited or called exec
  // between these reads.
  const isOne =
    argv.length > 0 && identityOf(pid, table.argumentsOf(pid)) === identityOf(pid, argv);
  if (entry.isFork || !isOne) return { kind: 'soon', name, pid };
  if (SHELLS.has(name)) return shellOf({ entry, argv, name, input, depth }, table);
  if (REMOTES.has(name)) return { kind: 'remote', name, pid };
  if (!LAUNCHERS.has(name)) return { kind: 'other', name, pid };
  return behind(entry, depth, table) ?? { kind: 'soon', name, pid };
}

function shellOf({ entry, argv, name, input, depth }: Seen, table: ForegroundTable): Foreground {
  const { pid } = entry;
  // csh reads its terminal with another descriptor.
  const onTerminal =
    input === undefined || name.endsWith('csh') || /^\/dev\/(?:pts\/|tty|console)/.test(input);
  if (!onTerminal) return { kind: 'other', name, pid };
  // A shell with one command may become an interactive one by exec: "bash -lc 'exec bash'".
  if (!isInteractive(argv)) {
    if (!runsText(argv)) return { kind: 'other', name, pid };
    const [runs] = table.childrenOf(pid);
    return { kind: 'soon', name, pid, ...(runs !== undefined && { runs }) };
  }
  const language = name === 'fish' ? 'fish' : name.endsWith('csh') ? 'csh' : 'posix';
  const identity = identityOf(pid, argv);
  const sleeps = entry.state === 'S';
  return {
    kind: 'shell',
    name,
    pid,
    language,
    identity,
    sleeps,
    ...(depth > 0 && { behind: true }),
  };
}

/** Which program a process runs now: exec changes its arguments. */
export function identityOf(pid: number, argv: readonly string[]): string {
  return [pid, ...argv].join('\0');
}

/** Busybox is many programs: its first or second word names the one. */
function programOf(name: string, argv: readonly string[]): string {
  if (name !== 'busybox') return name;
  const [first = '', second = ''] = argv;
  const called = first.slice(first.lastIndexOf('/') + 1);
  return called === 'busybox' ? second : called;
}

/** No script and no command text: it reads commands from its terminal. */
function isInteractive(argv: readonly string[]): boolean {
  const start = /(?:^|\/)busybox$/.test(argv[0] ?? '') ? 2 : 1;
  for (let at = start; at < argv.length; at += 1) {
    const word = argv[at] ?? '';
    if (!/^[-+]/.test(word)) return false;
    if (word === '--' || word === '-') return at + 1 === argv.length;
    if (/^-[A-Za-z]*c/.test(word)) return false;
    if (/^-[A-Za-z]*s/.test(word)) return true;
    if (TAKES_WORD.test(word)) at += 1;
  }
  return true;
}

function runsText(argv: readonly string[]): boolean {
  return argv.some((word) => /^-[A-Za-z]*c/.test(word));
}

/** The reader of a terminal that a launcher made for its children: `script`, `sudo`. */
function behind(
  launcher: ProcessEntry,
  depth: number,
  table: ForegroundTable,
): Foreground | undefined {
  if (depth >= MAX_DEPTH) return undefined;
  for (const pid of table.childrenOf(launcher.pid)) {
    const entry = table.readEntry(pid);
    if (!isAlive(entry)) continue;
    const other = entry.terminal !== 0 && entry.terminal !== launcher.terminal;
    if (other && entry.foreground > 0) {
      const found = looked(entry.foreground, depth + 1, table);
      if (found.kind !== 'soon') return found;
    }
    const deeper = behind(entry, depth + 1, table);
    if (deeper) return deeper;
  }
  return undefined;
}
