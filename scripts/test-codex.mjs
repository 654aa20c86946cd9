// The real codex command line against our exec-server and as a client of our tools: `npm run test:codex`.
import { spawnSync } from 'node:child_process';
import { join, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { codexCli } from './codex-cli.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
const { status } = spawnSync(process.execPath, [vitest, 'run', 'test/codex/real-'], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, CODEX_CLI: codexCli() },
});
process.exit(status ?? 1);
