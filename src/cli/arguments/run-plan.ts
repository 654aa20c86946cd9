// What `holdfast run` is asked to do, read from its words before anything is started.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { StartSpec } from '../../protocol/operations.ts';
import type { Call, Options } from './command.ts';
import { confinementOf, confinementOptions } from './confinement.ts';
import { inheritedEnvironment } from '../../base/inherited-environment.ts';
import { terminalSize } from '../output/terminal-size.ts';
import { shellWord, type Words } from './words.ts';

export const runOptions: Options = {
  background: { type: 'boolean', short: 'b', about: 'print the id and return at once' },
  detach: { type: 'boolean', short: 'd', about: 'the same as --background' },
  name: { type: 'string', value: 'NAME', about: 'a name to find it by' },
  cwd: {
    type: 'string',
    value: 'DIR',
    completes: 'directory',
    about: 'working directory (default: the current one)',
  },
  env: {
    type: 'string',
    short: 'e',
    multiple: true,
    value: 'NAME=VALUE',
    about: 'set an environment variable, in addition to those of this command',
  },
  timeout: {
    type: 'string',
    value: '30s',
    about: 'how long to wait; the process keeps running afterwards',
  },
  'hard-timeout': { type: 'string', value: '5m', about: 'end the process after this long' },
  stdin: {
    type: 'boolean',
    about: 'connect stdin to that of this command, or with --background to "holdfast send"',
  },
  pty: { type: 'boolean', short: 't', about: 'run it in a terminal' },
  interactive: {
    type: 'boolean',
    short: 'i',
    about: 'run it in a terminal and attach to it; Ctrl-] detaches',
  },
  merged: {
    type: 'boolean',
    about: 'merge stdout and stderr into one stream, in their true order',
  },
  key: {
    type: 'string',
    value: 'KEY',
    about: 'idempotency key: the same start with the same key runs once',
  },
  keep: { type: 'boolean', about: 'keep it running when the reader of its output goes away' },
  color: { type: 'boolean', about: 'show its colours on a terminal, as --pty does' },
  raw: { type: 'boolean', about: 'send control characters to the terminal unchanged' },
  ...confinementOptions,
};

export interface RunPlan {
  readonly spec: StartSpec;
  readonly background: boolean;
  readonly interactive: boolean;
  /** Forward stdin of this command. */
  readonly stdin: boolean;
  readonly keep: boolean;
  readonly colours: boolean;
  readonly timeoutMs: number | undefined;
}

export function runPlanOf({ words, caller, out }: Call): RunPlan {
  const interactive = words.flag('interactive');
  const background = words.flag('background') || words.flag('detach');
  const stdin = words.flag('stdin');
  const timeoutMs = words.durationMs('timeout');
  if (interactive)
    checkInteractive(words, background || stdin || out.json || timeoutMs !== undefined);
  const pty = interactive || words.flag('pty');
  const [name, key, hardTimeoutMs] = [
    words.text('name'),
    words.text('key'),
    words.durationMs('hard-timeout'),
  ];
  if (hardTimeoutMs === 0) throw words.wrong('--hard-timeout must be more than 0');
  const spec: StartSpec = {
    ...whatToRun(words, caller.cwd),
    cwd: resolve(caller.cwd, words.text('cwd') ?? '.'),
    // Not the keeper's environment: that is the environment of the command that started the keeper.
    environment: { inherit: 'none' },
    env: { ...inheritedEnvironment(caller.env, pty), ...variablesOf(words) },
    streams: pty ? 'pty' : words.flag('merged') ? 'merged' : 'separate',
    stdin: stdin ? 'pipe' : 'none',
    ...(pty && process.stdout.isTTY && { size: terminalSize(process.stdout) }),
    ...(name !== undefined && { name }),
    ...(key !== undefined && { key }),
    ...(hardTimeoutMs !== undefined && { hardTimeoutMs }),
    ...confinementOf(words, caller.cwd),
  };
  return {
    spec,
    background,
    interactive,
    stdin,
    keep: words.flag('keep'),
    colours: pty || words.flag('color'),
    timeoutMs,
  };
}

/** One word is a shell command; several, or any after "--", are a program and its arguments. */
function whatToRun(words: Words, cwd: string): Pick<StartSpec, 'argv' | 'command'> {
  const { plain, behindDashes } = words;
  const [first, ...rest] = plain;
  if (first === undefined || first === '')
    throw words.wrong(
      'missing command: quote a shell command, or give a program and its arguments',
    );
  if (behindDashes || rest.length > 0) {
    if (!behindDashes && /\s/.test(first) && !existsSync(resolve(cwd, first)))
      throw words.wrong(
        `"${first}" is not a program; options go before the command: holdfast run ${rest.join(' ')} ${shellWord(first)}`,
      );
    return { argv: [...plain] };
  }
  return { command: first };
}

function checkInteractive(words: Words, unfit: boolean): void {
  if (unfit)
    throw words.wrong(
      '--interactive cannot be combined with --background, --stdin, --timeout or --json',
    );
  if (!process.stdin.isTTY || !process.stdout.isTTY)
    throw words.wrong('--interactive needs a terminal on stdin and stdout');
}

function variablesOf(words: Words): Record<string, string> {
  const pairs = words.texts('env').map((pair): [string, string] => {
    const at = pair.indexOf('=');
    if (at < 1) throw words.wrong(`--env "${pair}" is not NAME=VALUE`);
    return [pair.slice(0, at), pair.slice(at + 1)];
  });
  return Object.fromEntries(pairs);
}
