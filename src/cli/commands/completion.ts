// `holdfast completion`

import { listAll } from '../../protocol/list-all.ts';
import type { Caller } from '../caller.ts';
import type { Answer, Command } from '../arguments/command.ts';
import { completionScripts, withCommonOptions, type Completable } from '../completion-scripts.ts';
import { summaries } from '../summaries.ts';

const shells = Object.keys(completionScripts);

export const command: Command = {
  name: 'completion',
  usage: shells.join('|'),
  summary: summaries.completion,
  examples: ['holdfast completion bash'],
  takes: shells,
  options: {},
  notes: [
    'bash, in ~/.bashrc:  eval "$(holdfast completion bash)"',
    'zsh, in ~/.zshrc:    eval "$(holdfast completion zsh)"',
    'fish:                holdfast completion fish | source',
    'Commands, options and their values are in the script: they start no program. For names and ids it asks a running',
    'keeper, once in three seconds, and never starts one. Written to a file, the script also starts no program when a',
    'shell starts: ~/.local/share/bash-completion/completions/holdfast, or ~/.config/fish/completions/holdfast.fish.',
  ],
  read({ words, caller }) {
    const [what = ''] = words.expect(shells.join(', '));
    // What the scripts ask.
    if (what === 'processes') return async () => processes(caller);
    const script = Object.hasOwn(completionScripts, what) ? completionScripts[what] : undefined;
    if (!script) throw words.wrong(`"${what}" is not one of ${shells.join(', ')}`);
    return async () => {
      const text = script(await completables());
      return { result: { shell: what, script: text }, lines: text.split('\n') };
    };
  },
};

async function completables(): Promise<Completable[]> {
  const { commands } = await import('../commands.ts');
  const { ttyCommands } = await import('../tty/main.ts');
  const own = await Promise.all(Array.from(commands.values(), (load) => load()));
  const names = own.map((module) => module.command.name);
  const terminal = (await ttyCommands()).map(({ name, summary, usage, options }) => ({
    name: `tty ${name}`,
    summary,
    options,
    ...(usage.startsWith('ID') && { takes: 'processes' as const }),
  }));
  return [...own.map((module) => withCommonOptions(module.command)), ...terminal].map((each) =>
    each.name === 'help' ? { ...each, takes: names } : each,
  );
}

/** Shells expand what they complete, so a name that could be more than a word to them is left out; its id is there. */
const PLAIN_NAME = /^[\w.@:+][\w.@:+-]*$/;

async function processes(caller: Caller): Promise<Answer> {
  const host = await caller.running();
  const every = host ? await listAll((page) => host.list(caller.sees, page)) : [];
  const names = every.map(({ name = '' }) => name).filter((name) => PLAIN_NAME.test(name));
  const lines = [...new Set(names), ...every.map(({ id }) => id)];
  return { result: { words: lines }, lines };
}
