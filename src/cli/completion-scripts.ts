// What shells need to complete a command line, made from the table of commands: names, options, their values, and the
// processes that a running keeper knows.

import { constants } from 'node:os';
import { commonOptions, type Command, type OptionRow, type Options } from './arguments/command.ts';

/** One command, or one of `tty`, as a completion sees it. */
export interface Completable {
  /** "logs", or "tty create". */
  readonly name: string;
  readonly summary: string;
  readonly options: Options;
  readonly takes?: Command['takes'];
}

export type Script = (commands: readonly Completable[]) => string;

/** Asks a running keeper and starts none. The only part that starts a program. */
const PROCESSES = 'holdfast completion processes 2>/dev/null';
/** Names are asked for once in this time: keys that are pressed one after the other start the program once. */
const KEPT_SECONDS = 3;
const signals = Object.keys(constants.signals).map((name) => name.slice('SIG'.length));

function flagsOf({ options }: Completable): string[] {
  return Object.keys(options).map((name) => `--${name}`);
}

function firstWords(commands: readonly Completable[], group = ''): string[] {
  const names = commands.filter(({ name }) => name.startsWith(group));
  return [...new Set(names.map(({ name }) => name.slice(group.length).split(' ')[0] ?? ''))];
}

/** A row of a `case`, one per command. */
function caseRows(
  commands: readonly Completable[],
  words: (command: Completable) => string | undefined,
): string {
  return commands
    .map((command) => ({ name: command.name, row: words(command) }))
    .filter(({ row }) => row !== undefined)
    .map(({ name, row }) => `      "${name}") ${row} ;;`)
    .join('\n');
}

function valueRows(commands: readonly Completable[]): string {
  const rows = commands.flatMap(({ name, options }) =>
    Object.entries(options).map(([option, row]) => ({ name, option, row })),
  );
  return rows
    .map(({ name, option, row }) => {
      const short = row.short === undefined ? '' : `|"${name}:-${row.short}"`;
      const action = valueAction(row);
      return action === undefined ? '' : `    "${name}:--${option}"${short}) ${action} ;;\n`;
    })
    .join('');
}

function valueAction({ type, completes }: OptionRow): string | undefined {
  if (type === 'boolean') return undefined;
  if (completes === 'directory') return 'COMPREPLY=($(compgen -d -- "$cur")); return';
  // Empty: the shell then offers files.
  const words = completes === 'signal' ? signals : (completes ?? []);
  return `words="${words.join(' ')}"`;
}

const bash: Script = (commands) => `_holdfast_processes() {
  if [ -z "$_holdfast_asked" ] || [ $((SECONDS - _holdfast_asked)) -ge ${KEPT_SECONDS} ]; then
    _holdfast_names="$(${PROCESSES})"
    _holdfast_asked=$SECONDS
  fi
}
_holdfast() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" words=""
  local command="\${COMP_WORDS[1]}"
  COMPREPLY=()
  if [ "$COMP_CWORD" -gt 2 ] && [ "$command" = tty ]; then command="tty \${COMP_WORDS[2]}"; fi
  case "$command:$prev" in
${valueRows(commands)}    *) if [ "$COMP_CWORD" -eq 1 ]; then words="${firstWords(commands).join(' ')}"
    elif [ "$command" = tty ]; then words="${firstWords(commands, 'tty ').join(' ')}"
    else case "$cur" in
    -*) case "$command" in
${caseRows(commands, (command) => `words="${flagsOf(command).join(' ')}"`)}
      esac ;;
    *) case "$command" in
${caseRows(commands, takenWords)}
      esac ;;
    esac; fi ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _holdfast holdfast`;

function takenWords({ takes }: Completable): string | undefined {
  if (takes === undefined) return undefined;
  return takes === 'processes'
    ? '_holdfast_processes; words="$_holdfast_names"'
    : `words="${takes.join(' ')}"`;
}

const zsh: Script = (commands) => `autoload -U +X compinit && compinit
autoload -U +X bashcompinit && bashcompinit
${bash(commands)}`;

const fish: Script = (commands) => {
  const quoted = (text: string): string => `'${text.replaceAll(/[\\']/g, '\\$&')}'`;
  const lines = commands
    .filter(({ name }) => !name.includes(' '))
    .map(({ name, summary }) => {
      return `complete -c holdfast -f -n __fish_use_subcommand -a ${name} -d ${quoted(summary)}`;
    });
  for (const { name, options, takes } of commands) {
    const [first = '', second] = name.split(' ');
    const seen = [first, second]
      .filter((word) => word !== undefined)
      .map((word) => `__fish_seen_subcommand_from ${word}`);
    const front = `complete -c holdfast -n ${quoted(seen.join('; and '))}`;
    for (const [option, row] of Object.entries(options)) {
      const short = row.short === undefined ? '' : ` -s ${row.short}`;
      lines.push(
        `${front} -l ${option}${short}${fishValue(row)} -d ${quoted(row.about.split('\n', 1)[0] ?? '')}`,
      );
    }
    if (takes === 'processes') lines.push(`${front} -f -a '(__holdfast_processes)'`);
    else if (takes) lines.push(`${front} -f -a ${quoted(takes.join(' '))}`);
  }
  const ttyWords = firstWords(commands, 'tty ').join(' ');
  return [
    'function __holdfast_processes',
    '  set -l now (date +%s)',
    `  if not set -q __holdfast_asked; or test (math $now - $__holdfast_asked) -ge ${KEPT_SECONDS}`,
    `    set -g __holdfast_names (${PROCESSES})`,
    '    set -g __holdfast_asked $now',
    '  end',
    String.raw`  printf '%s\n' $__holdfast_names`,
    'end',
    ...lines,
    `complete -c holdfast -f -n '__fish_seen_subcommand_from tty; and not __fish_seen_subcommand_from ${ttyWords}' -a ${quoted(ttyWords)}`,
  ].join('\n');
};

function fishValue({ type, completes }: OptionRow): string {
  if (type === 'boolean') return '';
  if (completes === 'directory') return " -x -a '(__fish_complete_directories)'";
  const words = completes === 'signal' ? signals : completes;
  return words ? ` -x -a '${words.join(' ')}'` : ' -r';
}

export const completionScripts: Readonly<Record<string, Script>> = { bash, zsh, fish };

export function withCommonOptions(command: Command): Completable {
  const { name, summary, takes } = command;
  const options = { ...command.options, ...commonOptions };
  return { name, summary, options, ...(takes && { takes }) };
}
