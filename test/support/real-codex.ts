// One run of the published codex command line, unmodified, with a scripted model on loopback. Only where CODEX_CLI names
// it, which `npm run test:codex` sets.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onCleanup, temporaryFolder } from './hosts.ts';
import { ScriptedModel, type ScriptedTurn } from './scripted-model.ts';

export const codexCli = process.env['CODEX_CLI'];

/** `codex exec` through the turns, and what the tools answered, as the model was told. */
export async function runCodex(
  turns: readonly ScriptedTurn[],
  {
    folder,
    env,
    config = '',
    codexHome = temporaryFolder(),
  }: {
    readonly folder: string;
    readonly env: Readonly<Record<string, string>>;
    /** Lines of its configuration besides those about the model. */
    readonly config?: string;
    /** Where its plugins may have been installed. */
    readonly codexHome?: string;
  },
): Promise<string[]> {
  const model = new ScriptedModel([...turns, { say: 'that is all' }]);
  onCleanup(() => model.close());
  const file = join(codexHome, 'config.toml');
  const installed = existsSync(file) ? readFileSync(file, 'utf8') : '';
  writeFileSync(file, modelConfig(await model.listen()) + config + installed);
  const words = ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'];
  const client = spawn(codexCli ?? '', [...words, '-C', folder, 'go'], {
    env: { ...process.env, HOME: folder, CODEX_HOME: codexHome, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  client.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
  client.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  onCleanup(() => void client.kill('SIGKILL'));
  const [code] = (await once(client, 'exit')) as [number | null];
  if (code !== 0 || !said.includes('that is all'))
    throw new Error(`codex ended with ${code}: ${said}`);
  return model.outputs;
}

function modelConfig(url: string): string {
  return [
    'model = "scripted"',
    'model_provider = "scripted"',
    '[model_providers.scripted]',
    'name = "scripted"',
    `base_url = "${url}"`,
    'wire_api = "responses"',
    '[features]',
    'unified_exec = true',
    '',
  ].join('\n');
}
