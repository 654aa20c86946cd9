// `holdfast completion`

import type { Command } from '../command.ts';

export const command: Command = {
  name: 'completion',
  usage: 'bash|zsh|fish',
  summary: 'Print what a shell needs to complete commands and ids.',
  options: {},
  notes: ['bash: eval "$(holdfast completion bash)"   fish: holdfast completion fish | source'],
  async run({ words }) {
    const [shell = ''] = words.exactly(1, 1);
    const { commands } = await import('../commands.ts');
    const script = scripts[shell]?.([...commands.keys()].join(' '));
    if (script === undefined) throw words.wrong(`"${shell}" is not bash, zsh or fish`);
    return { result: { shell, script }, lines: script.split('\n') };
  },
};

const IDS = 'holdfast ps --all 2>/dev/null | cut -f1';

const scripts: Readonly<Record<string, (names: string) => string>> = {
  bash: (names) => `_holdfast() {
  local word="\${COMP_WORDS[COMP_CWORD]}"
  if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W "${names}" -- "$word"))
  else COMPREPLY=($(compgen -W "$(${IDS})" -- "$word")); fi
}
complete -F _holdfast holdfast`,
  zsh: (names) => `#compdef holdfast
_holdfast() {
  if (( CURRENT == 2 )); then compadd ${names}
  else compadd $(${IDS}); fi
}
compdef _holdfast holdfast`,
  fish: (names) => `complete -c holdfast -f -n __fish_use_subcommand -a "${names}"
complete -c holdfast -f -n "not __fish_use_subcommand" -a "(${IDS})"`,
};
