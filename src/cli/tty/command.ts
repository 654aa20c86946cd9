// A `tty` command: its options, what it is given, what it returns.

import type { KeeperLink } from '../../keeper/link.ts';
import type { CommandHead, Options, Program } from '../arguments/command.ts';
import { Words } from '../arguments/words.ts';
import { Caller } from '../caller.ts';
import type { OutputStream } from '../output/output.ts';
import { TtyError } from './envelope.ts';
import { settingsFrom, type Settings } from './settings.ts';

/** The name under which scripts that were written for agent-tty call these commands. */
export const PEER = 'agent-tty';

export interface TtyOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** The state directory when no option names one. */
  readonly home?: string | undefined;
  readonly program: string;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
}

export interface TtyCommand extends CommandHead {
  /** The lines are output of a program, or a document: they are exact when piped. */
  readonly printsText?: true;
  readonly run: (call: TtyCall) => Promise<TtyAnswer>;
}

export interface TtyAnswer {
  readonly result: unknown;
  /** For a person. */
  readonly lines?: readonly string[];
  readonly exitCode?: number;
  /** For a person, on stderr. */
  readonly note?: string;
}

const options: Options = {
  json: { type: 'boolean', about: 'print one JSON object' },
  home: { type: 'string', value: 'DIR', completes: 'directory', about: 'state directory' },
  'timeout-ms': { type: 'string', hidden: true, about: 'accepted, as agent-tty does' },
  'no-color': { type: 'boolean', hidden: true, about: 'accepted; no output here has colours' },
  'log-level': {
    type: 'string',
    value: 'LEVEL',
    completes: ['debug', 'info', 'warn', 'error'],
    about: 'debug prints the state directory and the profile on stderr',
  },
  profile: {
    type: 'string',
    value: 'NAME',
    completes: ['reference-dark', 'reference-light'],
    about: 'theme of pictures: reference-dark or reference-light',
  },
  renderer: { type: 'string', hidden: true, about: 'accepted; there is one' },
  help: { type: 'boolean', short: 'h', about: 'show this help' },
};

export function ttyProgram(name: string): Program {
  return { name, options, dashedValues: true };
}

/** The words of one `tty` command, and where it works. */
export class TtyCall extends Words {
  readonly caller: Caller;
  /** A script that was written for agent-tty calls: its behaviour counts where ours differs. */
  readonly isPeer: boolean;
  readonly settings: Settings;
  readonly options: TtyOptions;

  constructor(command: TtyCommand, args: readonly string[], given: TtyOptions) {
    super(command, args, ttyProgram(given.program));
    const { env, cwd, home } = given;
    this.options = given;
    this.isPeer = given.program === PEER;
    this.settings = settingsFrom({
      env,
      cwd,
      home,
      isPeer: this.isPeer,
      option: (name) => this.text(name),
    });
    this.caller = new Caller({ env, cwd, home: this.settings.home, owner: undefined });
  }

  host(): Promise<KeeperLink> {
    return this.caller.host();
  }

  dimension(name: 'cols' | 'rows', usual = ''): number {
    const text = this.texts(name).at(-1) ?? usual;
    const value = Number(text);
    if (/^\d{1,4}$/.test(text) && value >= 1 && value <= 1000) return value;
    throw new TtyError('INVALID_DIMENSIONS', `--${name} must be a number from 1 to 1000.`);
  }
}
