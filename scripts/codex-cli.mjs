// Brings the published codex command line into a cache folder, once: it is no dependency of this package. Prints nothing
// but what npm has to say; answers the path of its program.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

export const CODEX_VERSION = '0.166.0';

export function codexCli() {
  const given = process.env.CODEX_CLI;
  if (given) return given;
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
  const folder = join(cache, 'holdfast', `codex-${CODEX_VERSION}`);
  const program = join(folder, 'node_modules', '.bin', 'codex');
  if (existsSync(program)) return program;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"private":true}\n');
  const npm = process.env.npm_execpath ? [process.execPath, process.env.npm_execpath] : ['npm'];
  const words = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const [command, ...first] = npm;
  const { status } = spawnSync(command, [...first, ...words, `@openai/codex@${CODEX_VERSION}`], {
    cwd: folder,
    stdio: ['ignore', 2, 2],
  });
  if (status !== 0 || !existsSync(program)) {
    process.stderr.write(`holdfast: @openai/codex ${CODEX_VERSION} could not be installed\n`);
    process.exit(1);
  }
  return program;
}
