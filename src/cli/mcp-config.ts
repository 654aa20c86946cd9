// Ready-to-paste configuration for the programs that speak MCP: each wants the same line in another form.

import { shellWord } from './arguments/words.ts';

interface McpCommand {
  readonly command: string;
  readonly args: readonly string[];
}

interface ClientRow {
  readonly title: string;
  /** Where the text belongs. */
  readonly place: string;
  readonly text: (server: McpCommand) => string;
  /** Options that this client needs unless others are given. */
  readonly args?: readonly string[];
}

const json = (value: unknown): string => JSON.stringify(value, null, 2);
/** JSON's strings are TOML's basic strings. */
const toml = (word: string): string => JSON.stringify(word);

const servers = ({ command, args }: McpCommand): string =>
  json({ mcpServers: { holdfast: { command, args } } });

export const mcpClients: Readonly<Record<string, ClientRow>> = {
  'claude-code': {
    title: 'Claude Code',
    place: 'run this once',
    text: ({ command, args }) =>
      ['claude', 'mcp', 'add', 'holdfast', '--', command, ...args].map(shellWord).join(' '),
  },
  codex: {
    title: 'Codex',
    place: '~/.codex/config.toml',
    // Codex cuts what is longer than about 10,000 characters in the middle.
    args: ['--max-output', '8000'],
    text: ({ command, args }) =>
      [
        '# ~/.codex/config.toml',
        '[mcp_servers.holdfast]',
        `command = ${toml(command)}`,
        `args = [${args.map(toml).join(', ')}]`,
        // Its default, 10 seconds, is not enough on a busy machine: codex then goes on without the tools.
        'startup_timeout_sec = 60',
        'tool_timeout_sec = 60',
      ].join('\n'),
  },
  'gemini-cli': { title: 'Gemini CLI', place: '~/.gemini/settings.json', text: servers },
  cursor: { title: 'Cursor', place: '.cursor/mcp.json', text: servers },
  vscode: {
    title: 'VS Code',
    place: '.vscode/mcp.json',
    text: ({ command, args }) => json({ servers: { holdfast: { type: 'stdio', command, args } } }),
  },
};
