// A pid namespace of a test's own: signals by name or to everybody reach nothing else of the machine from there.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { main } from './command-line.ts';
import { temporaryFolder } from './hosts.ts';

export const namespaces =
  spawnSync('unshare', ['--pid', '--fork', '--mount-proc', 'true']).status === 0;
export const NOBODY = 65_534;

/** The output of a script that is process 1 of a namespace; everything in there ends with it. */
export async function inNamespace(script: string, user?: number): Promise<string> {
  const folder = temporaryFolder();
  const file = join(folder, 'script.sh');
  writeFileSync(file, script);
  chmodSync(folder, 0o755);
  const home = join(folder, 'h');
  const as =
    user === undefined
      ? []
      : ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups', '--'];
  if (user !== undefined) chownSync(folder, user, user);
  const words = ['--pid', '--fork', '--mount-proc', '--kill-child', ...as, 'sh', file];
  const child = spawn('unshare', words, {
    cwd: folder,
    env: { ...process.env, HOLDFAST_HOME: home, HOME: folder, NODE: process.execPath, MAIN: main },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const texts = { stdout: '', stderr: '' };
  for (const sink of ['stdout', 'stderr'] as const)
    child[sink].setEncoding('utf8').on('data', (text: string) => (texts[sink] += text));
  await once(child, 'close');
  return texts.stdout + texts.stderr;
}
