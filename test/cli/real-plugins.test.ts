// The plugin folder installed in the published agents, unmodified and offline, and its tools called by scripted models. Only
// with CLAUDE_CLI and CODEX_CLI, which `npm run test:plugins` sets.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { main, root } from '../support/command-line.ts';
import { onCleanup, stopKeeper, temporaryFolder } from '../support/hosts.ts';
import { codexCli, runCodex } from '../support/real-codex.ts';
import type { ModelRequest, ScriptedTurn } from '../support/scripted-model.ts';
import { ScriptedMessages } from '../support/scripted-messages.ts';

const claudeCli = process.env['CLAUDE_CLI'];
const TIMEOUT_MS = 120_000;
const MOST_TURNS = 200;
const COMMAND = 'echo from-$((40+2)); exit 3';

/** codex asks its model while servers of plugins still start: it is kept busy until the tool is there. */
function callOnceThere(): () => ScriptedTurn {
  let called = false;
  const turn = ({ tools }: ModelRequest): ReturnType<typeof callTool> => {
    if (called) return { say: 'that is all' };
    called = tools.some(({ name }) => name === 'mcp__holdfast');
    return called ? callTool() : { tool: 'exec_command', args: { cmd: 'true' } };
  };
  return () => turn;
}

function callTool(): Exclude<ScriptedTurn, (...args: never[]) => unknown> {
  return { namespace: 'mcp__holdfast', tool: 'execute', args: { command: COMMAND } };
}

/** A user without anything of ours but `npx`, as it would be with the package on the registry. */
function newUser(): { folder: string; plugins: string; env: Record<string, string> } {
  const folder = temporaryFolder();
  const [bin, home, state] = ['bin', 'home', 'state'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  for (const each of [bin, home]) mkdirSync(each);
  const npx = `#!/bin/sh\nshift 2\nexec '${process.execPath}' '${main}' "$@"\n`;
  writeFileSync(join(bin, 'npx'), npx);
  chmodSync(join(bin, 'npx'), 0o755);
  const plugins = join(folder, 'plugins');
  cpSync(join(root, 'plugins'), plugins, { recursive: true });
  onCleanup(() => stopKeeper(state));
  const env = {
    PATH: `${bin}:${process.env['PATH'] ?? ''}`,
    HOME: home,
    HOLDFAST_HOME: state,
    HOLDFAST_IDLE: '60s',
    HTTPS_PROXY: 'http://127.0.0.1:9',
    NO_PROXY: '127.0.0.1',
  };
  return { folder, plugins, env };
}

async function run(program: string, words: readonly string[], where: ReturnType<typeof newUser>) {
  const child = spawn(program, words, {
    cwd: where.folder,
    env: where.env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onCleanup(() => void child.kill('SIGKILL'));
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`${program} ${words.join(' ')} ended with ${code}: ${said}`);
  return said;
}

describe.skipIf(claudeCli === undefined || codexCli === undefined)('the installed plugin', () => {
  it(
    '[PL4] lets a model in Claude Code call a tool',
    async () => {
      const user = newUser();
      const claude = claudeCli ?? '';
      await run(claude, ['plugin', 'marketplace', 'add', user.plugins], user);
      await run(claude, ['plugin', 'install', 'holdfast@holdfast'], user);
      const tool = 'mcp__plugin_holdfast_holdfast__execute';
      const model = new ScriptedMessages([
        { tool, input: { command: COMMAND } },
        { say: 'that is all' },
      ]);
      onCleanup(() => model.close());
      Object.assign(user.env, {
        ANTHROPIC_BASE_URL: await model.listen(),
        ANTHROPIC_API_KEY: 'none',
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      });
      expect(await run(claude, ['-p', 'go', '--allowedTools', tool], user)).toContain(
        'that is all',
      );
      expect(model.outputs).toHaveLength(1);
      expect(model.outputs[0]).toContain('from-42');
      expect(model.outputs[0]).toMatch(/exit_code\W+3/);
    },
    TIMEOUT_MS,
  );

  it(
    '[PL4] lets a model in codex call a tool',
    async () => {
      const user = newUser();
      const codexHome = temporaryFolder();
      Object.assign(user.env, { CODEX_HOME: codexHome });
      const codex = codexCli ?? '';
      await run(codex, ['plugin', 'marketplace', 'add', user.plugins], user);
      await run(codex, ['plugin', 'add', 'holdfast@holdfast'], user);
      const { PATH: path = '', HOLDFAST_HOME: state = '' } = user.env;
      const outputs = await runCodex(Array.from({ length: MOST_TURNS }, callOnceThere()), {
        folder: user.folder,
        codexHome,
        env: { PATH: path, HOLDFAST_HOME: state, HOLDFAST_IDLE: '60s' },
      });
      const output = outputs.at(-1);
      expect(output).toContain('from-42');
      expect(output).toMatch(/exit_code\W+3/);
    },
    TIMEOUT_MS,
  );
});
