// The adapters inside the unmodified frameworks: `npm run test:adapters`. Installs them into a folder of their own, once.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder =
  process.env.FRAMEWORKS ?? join(root, 'node_modules', '.cache', 'holdfast-frameworks');
const PACKAGES = [
  'ai@7.0.169',
  '@openai/agents-core@0.20.0',
  '@openai/agents-extensions@0.18.0',
  '@mastra/core@1.71.0',
  '@mastra/e2b@0.8.0',
  '@agentclientprotocol/sdk@2.4.0',
  'e2b@2.51.0',
  'zod@4',
  // The peers of deepagents by name: the newest ones ask for versions that cannot be installed.
  'deepagents@1.14.1',
  'langchain@1.5.10',
  '@langchain/core@1.2.9',
  '@langchain/langgraph@1.4.10',
  '@langchain/langgraph-checkpoint@1.1.5',
  '@langchain/langgraph-sdk@1.9.23',
  'langsmith@0.9',
];

const stamp = join(folder, 'installed.json');
const wanted = JSON.stringify(PACKAGES);
if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"private":true}\n');
  const words = ['install', '--ignore-scripts', '--legacy-peer-deps', '--no-audit', '--no-fund'];
  const { status } = spawnSync('npm', [...words, '--loglevel=error', ...PACKAGES], {
    cwd: folder,
    stdio: 'inherit',
  });
  if (status !== 0) process.exit(1);
  writeFileSync(stamp, wanted);
}
const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
const { status } = spawnSync(process.execPath, [vitest, 'run', 'test/adapters'], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, FRAMEWORKS: folder },
});
process.exit(status ?? 1);
