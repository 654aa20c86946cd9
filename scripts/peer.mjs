// Brings a published program into a cache folder, once: it is no dependency of this package. Prints nothing but what npm
// has to say; answers the path of its program, or undefined when it cannot be had.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';

export function installedPeer({ name, version, bin }) {
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
  const folder = join(cache, 'holdfast', `${basename(name)}-${version}`);
  const program = join(folder, 'node_modules', '.bin', bin);
  if (existsSync(program)) return program;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"private":true}\n');
  const npm = process.env.npm_execpath ? [process.execPath, process.env.npm_execpath] : ['npm'];
  const words = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const [command, ...first] = npm;
  const { status } = spawnSync(command, [...first, ...words, `${name}@${version}`], {
    cwd: folder,
    stdio: ['ignore', 2, 2],
  });
  return status === 0 && existsSync(program) ? program : undefined;
}
