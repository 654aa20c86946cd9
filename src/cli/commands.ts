// The table of commands, in the order of the help. Each file is loaded only when its command is asked for, except two that
// need nothing but this.

import { HoldfastError } from '../protocol/errors.ts';
import type { Command } from './arguments/command.ts';
import { nearest } from './arguments/nearest.ts';
import { command as help } from './commands/help.ts';
import { command as version } from './commands/version.ts';
import type { CommandName } from './summaries.ts';

type Load = () => Promise<{ readonly command: Command }>;

export const commands: ReadonlyMap<string, Load> = new Map<CommandName, Load>([
  ['run', () => import('./commands/run.ts')],
  ['ps', () => import('./commands/ps.ts')],
  ['inspect', () => import('./commands/inspect.ts')],
  ['logs', () => import('./commands/logs.ts')],
  ['wait', () => import('./commands/wait.ts')],
  ['send', () => import('./commands/send.ts')],
  ['inbox', () => import('./commands/inbox.ts')],
  ['search', () => import('./commands/search.ts')],
  ['stop', () => import('./commands/stop.ts')],
  ['kill', () => import('./commands/kill.ts')],
  ['signal', () => import('./commands/signal.ts')],
  ['rm', () => import('./commands/rm.ts')],
  ['prune', () => import('./commands/prune.ts')],
  ['export', () => import('./commands/export.ts')],
  ['attach', () => import('./commands/attach.ts')],
  ['tty', () => import('./commands/tty.ts')],
  ['dashboard', () => import('./commands/dashboard.ts')],
  ['up', () => import('./commands/up.ts')],
  ['service', () => import('./commands/service.ts')],
  ['share', () => import('./commands/share.ts')],
  ['serve', () => import('./commands/serve.ts')],
  ['join', () => import('./commands/join.ts')],
  ['gateway', () => import('./commands/gateway.ts')],
  ['fleet', () => import('./commands/fleet.ts')],
  ['exec-server', () => import('./commands/exec-server.ts')],
  ['ssh-command', () => import('./commands/ssh-command.ts')],
  ['mcp', () => import('./commands/mcp.ts')],
  ['token', () => import('./commands/token.ts')],
  ['restart', () => import('./commands/restart.ts')],
  ['upgrade', () => import('./commands/upgrade.ts')],
  ['config', () => import('./commands/config.ts')],
  ['status', () => import('./commands/status.ts')],
  ['shutdown', () => import('./commands/shutdown.ts')],
  ['doctor', () => import('./commands/doctor.ts')],
  ['debug', () => import('./commands/debug.ts')],
  ['completion', () => import('./commands/completion.ts')],
  ['demo', () => import('./commands/demo.ts')],
  ['version', async () => ({ command: version })],
  ['help', async () => ({ command: help })],
]);

/** Names of these commands in other programs. */
const otherNames: Readonly<Record<string, string>> = {
  ls: 'ps',
  list: 'ps',
  log: 'logs',
  remove: 'rm',
  exec: 'run',
  start: 'run',
  show: 'inspect',
  ui: 'dashboard',
  web: 'dashboard',
  update: 'upgrade',
};

/** Throws an error that names the command that was probably meant. */
export async function findCommand(name: string): Promise<Command> {
  const load = commands.get(name);
  if (load) return (await load()).command;
  const problem = name.startsWith('-')
    ? 'Options go after the command: holdfast COMMAND [options].'
    : `Unknown command "${name}"${meant(name)}`;
  throw new HoldfastError('invalid_input', problem, { usage: 'holdfast help' });
}

function meant(name: string): string {
  const other = Object.hasOwn(otherNames, name) ? otherNames[name] : undefined;
  const near = other ?? nearest(name, [...commands.keys()]);
  return near === undefined ? '.' : `; did you mean "${near}"?`;
}
