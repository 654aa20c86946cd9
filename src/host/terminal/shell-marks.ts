// Makes shells mark their commands: each is started so that it reads a file of ours besides the user's own, which stay
// unchanged. `$?`, the history and stdin stay the user's.

import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { BASH, BASH_STATUSES, FISH, SH, ZSH } from './shell-scripts.ts';

export interface MarkedShell {
  readonly kind: string;
  readonly nonce: string;
  readonly argv: readonly string[];
}

/** Variables for our files, which unset them at once, so that no program inherits them. */
const NONCE = 'HOLDFAST_MARKS';

const files = {
  'bash.rc': BASH,
  'bash.env': BASH_STATUSES,
  'sh.rc': SH,
  'marks.fish': FISH,
  'zsh/.zshenv': ZSH,
} as const;

/** The options with which each shell still reads our file, in order of preference. */
const plain: Readonly<Record<string, RegExp>> = {
  bash: /^(?:-i|)$/,
  zsh: /^(?:-i|-l|-il|-li|--login|)$/,
  fish: /^(?:-i|-l|-il|-li|--login|)$/,
  sh: /^(?:-i|)$/,
  dash: /^(?:-i|)$/,
  ash: /^(?:-i|)$/,
};

export class ShellMarks {
  private readonly folder: string;
  private written = false;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Only for a plainly started interactive shell; undefined for everything else. Changes `env`. */
  apply(argv: readonly string[], env: Map<string, string>): MarkedShell | undefined {
    const [file = '', ...rest] = argv;
    const kind = basename(file);
    if (!plain[kind]?.test(rest.join(' '))) return undefined;
    const more = this.start(kind, env);
    if (!more) return undefined;
    this.write();
    const nonce = randomBytes(8).toString('hex');
    env.set(NONCE, nonce);
    return { kind, nonce, argv: [file, ...more, ...rest] };
  }

  /** Makes a `bash -c` report the statuses of its last pipeline. Changes `env`. */
  tellStatuses(argv: readonly string[], env: Map<string, string>): void {
    if (scriptOf(argv) === undefined) return;
    this.write();
    keep(env, 'BASH_ENV', 'HOLDFAST_BASH_ENV');
    env.set('BASH_ENV', join(this.folder, 'bash.env'));
  }

  private start(kind: string, env: Map<string, string>): string[] | undefined {
    switch (kind) {
      case 'bash':
        return ['--rcfile', join(this.folder, 'bash.rc')];
      case 'zsh':
        keep(env, 'ZDOTDIR', 'HOLDFAST_ZDOTDIR');
        env.set('ZDOTDIR', join(this.folder, 'zsh'));
        return [];
      case 'fish':
        return ['--init-command', `source ${quoted(join(this.folder, 'marks.fish'))}`];
      case 'sh':
      case 'dash':
      case 'ash':
        keep(env, 'ENV', 'HOLDFAST_ENV');
        env.set('HOLDFAST_BASH', join(this.folder, 'bash.rc'));
        env.set('ENV', join(this.folder, 'sh.rc'));
        return [];
      default:
        return undefined;
    }
  }

  private write(): void {
    if (this.written) return;
    mkdirSync(join(this.folder, 'zsh'), { recursive: true, mode: 0o700 });
    for (const [name, text] of Object.entries(files))
      writeFileSync(join(this.folder, name), text, { mode: 0o600 });
    this.written = true;
  }
}

/** The script of a `bash -c`. */
export function scriptOf([program = '', option, script, ...rest]: readonly string[]):
  | string
  | undefined {
  const isScript = basename(program) === 'bash' && option === '-c' && rest.length === 0;
  return isScript ? script : undefined;
}

function keep(env: Map<string, string>, name: string, as: string): void {
  const value = env.get(name);
  if (value !== undefined) env.set(as, value);
}

function quoted(path: string): string {
  return `'${path.replace(/['\\]/g, (character) => `\\${character}`)}'`;
}
