// `holdfast up`

import { fileURLToPath } from 'node:url';
import { ENGINE_FLAGS } from '../../base/engine-flags.ts';
import { builtFile } from '../../base/workers/built-file.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Command } from '../arguments/command.ts';
import { settingOptions } from '../settings/setting.ts';
import { summaries } from '../summaries.ts';
import { command as serve, serverArguments } from './serve.ts';

const { resume: _, 'last-port': _last, ...serveOptions } = serve.options;

export const command: Command = {
  name: 'up',
  usage: '[--port N] [--host ADDR] [--grace 5s] [options of serve]',
  summary: summaries.up,
  examples: ['holdfast up --port 4100 --grace 20s'],
  options: {
    ...serveOptions,
    ...settingOptions('up'),
  },
  settings: ['up', 'serve', 'keeper', 'log'],
  notes: [
    'For containers and services. It may be process 1. The server is started again when it dies; the keeper never',
    'leaves for want of processes. SIGTERM and Ctrl-C end every process with its grace period, then server and keeper.',
    'Exit code 1: something survived or could not be checked; "holdfast status" tells whether it is healthy.',
  ],
  read({ words, caller }) {
    words.expect();
    const graceMs = words.durationMs('grace');
    const args = serverArguments(words, caller);
    const { keeperArgs, home, env } = caller;
    return async () => {
      const running = await caller.running();
      await caller.refuseInside('start a keeper');
      if (running) {
        const { pid } = running.keeper;
        const problem = `A keeper is already running for ${home} (pid ${pid}).`;
        const remedy = 'End it with "holdfast shutdown", or use it with "holdfast serve".';
        throw new HoldfastError('server_running', problem, { pid, remedy });
      }
      return becomeKeeper(home, env, [
        ...(await keeperArgs()),
        ...(graceMs === undefined ? [] : ['--grace-ms', String(graceMs)]),
        '--foreground',
        JSON.stringify(args),
      ]);
    };
  },
};

/** The keeper runs in place of this program: nothing stands between it and who started it, nor above it as process 1. */
async function becomeKeeper(
  home: string,
  env: NodeJS.ProcessEnv,
  keeperArgs: readonly string[],
): Promise<never> {
  const { loadPosix, posixProblem } = await import('../../system/posix.ts');
  const { openHome } = await import('../../keeper/home.ts');
  const { MARKER_NAME } = await import('../../host/start/environment.ts');
  const posix = loadPosix();
  if (!posix) {
    const problem = posixProblem() ?? 'unknown';
    throw new HoldfastError('unsupported', `A keeper cannot run here: ${problem}.`);
  }
  const main = fileURLToPath(builtFile(import.meta.url, '../../keeper/main.js'));
  const { folder } = openHome(home);
  const own = Object.entries(env).filter(([name]) => name !== MARKER_NAME);
  const variables = own.map(([name, value]) => `${name}=${value ?? ''}`);
  process.chdir('/');
  const argv = [process.execPath, ...ENGINE_FLAGS, main, '--home', folder, ...keeperArgs];
  return posix.replaceProgram(process.execPath, argv, variables);
}
