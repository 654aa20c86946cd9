// The table of commands, in the order of the help. Each file is loaded only when its command is asked for.

import type { Command } from './command.ts';

type Load = () => Promise<{ readonly command: Command }>;

export const commands: ReadonlyMap<string, Load> = new Map<string, Load>([
  ['run', () => import('./commands/run.ts')],
  ['ps', () => import('./commands/ps.ts')],
  ['logs', () => import('./commands/logs.ts')],
  ['wait', () => import('./commands/wait.ts')],
  ['send', () => import('./commands/send.ts')],
  ['search', () => import('./commands/search.ts')],
  ['stop', () => import('./commands/stop.ts')],
  ['kill', () => import('./commands/kill.ts')],
  ['signal', () => import('./commands/signal.ts')],
  ['rm', () => import('./commands/rm.ts')],
  ['prune', () => import('./commands/prune.ts')],
  ['export', () => import('./commands/export.ts')],
  ['attach', () => import('./commands/attach.ts')],
  ['tty', () => import('./commands/tty.ts')],
  ['serve', () => import('./commands/serve.ts')],
  ['exec-server', () => import('./commands/exec-server.ts')],
  ['mcp', () => import('./commands/mcp.ts')],
  ['token', () => import('./commands/token.ts')],
  ['restart', () => import('./commands/restart.ts')],
  ['status', () => import('./commands/status.ts')],
  ['shutdown', () => import('./commands/shutdown.ts')],
  ['doctor', () => import('./commands/doctor.ts')],
  ['completion', () => import('./commands/completion.ts')],
  ['demo', () => import('./commands/demo.ts')],
  ['version', () => import('./commands/version.ts')],
  ['help', () => import('./commands/help.ts')],
]);
