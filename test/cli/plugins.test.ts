// The folder that installs Holdfast in agents: its manifests agree, its skills can be read, and its server works where agents
// start it. `npm run test:plugins` installs it in the real agents.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { describe, expect, it } from 'vitest';
import { main, root } from '../support/command-line.ts';
import { homeForStdio } from '../support/mcp-clients.ts';
import { onCleanup, temporaryFolder } from '../support/hosts.ts';

const folder = join(root, 'plugins/holdfast');

function json(...path: string[]): Record<string, unknown> {
  return JSON.parse(readFileSync(join(...path), 'utf8')) as Record<string, unknown>;
}

describe('the plugin', () => {
  it('[PL1] has one name, one version and one server in all its manifests', () => {
    const { version } = json(root, 'package.json');
    const manifests = ['.claude-plugin/plugin.json', '.codex-plugin/plugin.json', 'plugin.json'];
    for (const name of manifests)
      expect(json(folder, name)).toMatchObject({ name: 'holdfast', version });
    const server = { command: 'npx', args: ['-y', 'holdfast', 'mcp'] };
    for (const name of ['.mcp.json', 'mcp.json'])
      expect(json(folder, name)).toMatchObject({ mcpServers: { holdfast: server } });
    const allowed = ['$schema', 'name', 'version', 'description', 'license'];
    expect(
      Object.keys(json(folder, 'plugin.json')).filter((key) => !allowed.includes(key)),
    ).toEqual([]);
    for (const name of ['.claude-plugin/marketplace.json', '.agents/plugins/marketplace.json'])
      expect(json(root, 'plugins', name)).toMatchObject({ plugins: [{ name: 'holdfast' }] });
    expect((json(root, 'package.json')['files'] as string[]).includes('plugins')).toBe(true);
  });

  it('[PL2] has skills with a name, a description and nothing that YAML would misread', () => {
    for (const name of readdirSync(join(folder, 'skills'))) {
      const text = readFileSync(join(folder, 'skills', name, 'SKILL.md'), 'utf8');
      const [, front = ''] = /^---\n([^]*?)\n---\n/.exec(text) ?? [];
      const lines = front.split('\n').map((line) => /^(\w+): ([\w][^:#]*)$/.exec(line));
      expect(lines.map((line) => line?.[1])).toEqual(['name', 'description']);
      expect(lines[0]?.[2]).toBe(name);
      expect(lines[1]?.[2]?.length).toBeLessThan(1024);
    }
  });

  it('[PL3] runs commands in the home directory where an agent starts it in its own folder', async () => {
    const home = homeForStdio();
    const user = temporaryFolder();
    const client = new Client({ name: 'test', version: '1' });
    const env = { ...(process.env as Record<string, string>), HOME: user, PLUGIN_ROOT: folder };
    const args = [main, 'mcp', '--home', home];
    await client.connect(
      new StdioClientTransport({ command: process.execPath, args, env, cwd: folder }),
    );
    onCleanup(() => client.close());
    const answer = await client.callTool({ name: 'execute', arguments: { command: 'pwd' } });
    expect(answer.structuredContent).toMatchObject({ output: `${user}\n` });
  });
});
