// `holdfast mcp`

import { mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { systemClock } from '../../base/clock.ts';
import type { Api } from '../../client/api.ts';
import type { Caller } from '../caller.ts';
import type { Answer, Call, Command } from '../command.ts';
import { inheritedEnvironment } from '../inherited-environment.ts';
import { mcpClients } from '../mcp-config.ts';
import type { Words } from '../words.ts';

/** Owns what is started when no chat is named. */
const DEFAULT_OWNER = 'mcp';

export const command: Command = {
  name: 'mcp',
  usage: '[--chat ID] [--embed] [--directory DIR] | --print-config CLIENT',
  summary: 'Serve the tools for models over MCP, on stdin and stdout.',
  options: {
    chat: { type: 'string', value: 'ID', about: 'keep the processes of this chat to itself' },
    embed: { type: 'boolean', about: 'hold the processes itself; they end with it' },
    directory: { type: 'string', value: 'DIR', about: 'where commands run (default: here)' },
    'max-output': { type: 'string', value: 'BYTES', about: 'largest output in one answer (32768)' },
    'max-wait': {
      type: 'string',
      value: '45s',
      about: 'longest wait for clients that do not ask for progress',
    },
    progress: { type: 'string', value: '5s', about: 'how often a wait tells that it goes on' },
    'print-config': {
      type: 'string',
      value: 'CLIENT',
      about: `what to paste: ${Object.keys(mcpClients).join(', ')}`,
    },
  },
  notes: [
    'Uses the local server, which is started if it is not there, and finds it again when it was killed.',
    'The end of stdin ends it; processes go on, except with --embed.',
  ],
  async run(call) {
    const { words, out } = call;
    words.exactly(0, 0);
    const client = words.text('print-config');
    if (client !== undefined) return printConfig(client, words);
    if (out.json) throw words.wrong('--json is for --print-config: stdout belongs to the protocol');
    await serve(call);
    return { result: undefined, said: true };
  },
};

function printConfig(client: string, words: Words): Answer {
  const row = mcpClients[client];
  if (!row) {
    const known = Object.keys(mcpClients).join(', ');
    throw words.wrong(`--print-config "${client}" is not one of ${known}`);
  }
  const server = {
    command: process.execPath,
    args: [process.argv[1] ?? '', 'mcp', ...kept(words)],
  };
  const text = row.text(server);
  return {
    result: { client, place: row.place, text, ...server },
    lines: text.split('\n'),
  };
}

/** What was said beside --print-config is meant for the server. */
function kept(words: Words): string[] {
  const named = ['chat', 'directory', 'max-output', 'max-wait', 'progress', 'home'].flatMap(
    (name) => {
      const value = words.text(name);
      return value === undefined ? [] : [`--${name}`, value];
    },
  );
  return [...named, ...(words.flag('embed') ? ['--embed'] : [])];
}

async function serve({ words, caller, out }: Call): Promise<void> {
  const [directory, maxOutputBytes, maxWaitMs, progressEveryMs] = [
    resolve(caller.cwd, words.text('directory') ?? '.'),
    words.count('max-output'),
    words.durationMs('max-wait'),
    words.durationMs('progress'),
  ];
  const { createMcpServer } = await import('../../tools/mcp-server.ts');
  const { serveStdio } = await import('@modelcontextprotocol/server/stdio');
  const chat = words.text('chat');
  const owner = chat === undefined ? (words.text('owner') ?? DEFAULT_OWNER) : `chat:${chat}`;
  const place = words.flag('embed') ? embedded(owner, caller) : local(owner, caller);
  let connected: Promise<Api> | undefined;
  const connection = (): Promise<Api> => (connected ??= place.connect());
  const report = (error: unknown): void =>
    void out.note(error instanceof Error ? error.message : String(error));
  const handle = serveStdio(
    ({ era }) =>
      createMcpServer({
        connection,
        tellAll: era === 'modern',
        directory,
        environment: { inherit: 'none' },
        // The client's, which may be another than that of whoever started the keeper.
        env: inheritedEnvironment(caller.env),
        by: owner,
        ...(chat !== undefined && { browserSession: chat }),
        ...(maxOutputBytes !== undefined && { maxOutputBytes }),
        ...(progressEveryMs !== undefined && { progressEveryMs }),
        maxWaitMs,
        report,
      }),
    { onerror: report },
  );
  await over();
  await handle.close();
  await (await connected?.catch(() => undefined))?.close();
  place.forget();
}

interface Place {
  connect(): Promise<Api>;
  forget(): void;
}

function local(owner: string, { home, env }: Caller): Place {
  return {
    connect: async () => {
      const { connect } = await import('../../client/connect.ts');
      return (await connect({ home, env, owner })).api;
    },
    forget: () => undefined,
  };
}

/** Nothing of it is left when it ends. */
function embedded(owner: string, { env, cwd }: Caller): Place {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-mcp-'));
  return {
    connect: async () => {
      const { Host } = await import('../../host/host.ts');
      const { nearApi } = await import('../../client/near-api.ts');
      const { nearTerminals } = await import('../../server/terminals/near-terminals.ts');
      const { Terminals } = await import('../../server/terminals/terminals.ts');
      const surroundings = { env, cwd, home: homedir() };
      const host = await Host.open({ folder, surroundings });
      const terminals = new Terminals(host, systemClock, folder);
      const shell = env['SHELL'] || '/bin/sh';
      return {
        ...nearApi(host, owner),
        terminals: nearTerminals({ host, terminals, clock: systemClock, shell }, owner),
        close: async () => {
          await terminals.close();
          await host.close();
        },
      };
    },
    forget: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function over(): Promise<void> {
  return new Promise((resolve) => {
    process.stdin.once('end', resolve).once('close', resolve);
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
      process.once(signal, () => resolve());
  });
}
