// `holdfast mcp`

import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import type { Api } from '../../client/api.ts';
import { openHome } from '../../keeper/home.ts';
import type { Caller } from '../caller.ts';
import type { Answer, Call, Command } from '../arguments/command.ts';
import { inheritedEnvironment } from '../../base/inherited-environment.ts';
import { MARKER_NAME } from '../../host/start/environment.ts';
import { mcpClients } from '../mcp-config.ts';
import type { Words } from '../arguments/words.ts';
import { settingOptions } from '../settings/setting.ts';
import { summaries } from '../summaries.ts';

/** The owner of processes when no chat is named. */
const DEFAULT_OWNER = 'mcp';

export const command: Command = {
  name: 'mcp',
  usage: '[--chat ID] [--embed] [--directory DIR] | --print-config CLIENT',
  summary: summaries.mcp,
  examples: ['holdfast mcp --print-config claude-code', 'holdfast mcp --max-output 8000'],
  options: {
    chat: { type: 'string', value: 'ID', about: 'see and start only processes of this chat' },
    embed: { type: 'boolean', about: 'run processes inside this command; they end with it' },
    ...settingOptions('mcp'),
    'print-config': {
      type: 'string',
      value: 'CLIENT',
      completes: Object.keys(mcpClients),
      about: `print the configuration for ${Object.keys(mcpClients).join(', ')}`,
    },
  },
  settings: ['mcp'],
  notes: [
    'Needs no server: it asks the keeper, starts it if none is running, and reconnects if it was lost.',
    'Exits when stdin is closed; processes keep running, except with --embed.',
  ],
  read(call) {
    const { words, out } = call;
    words.expect();
    const client = words.text('print-config');
    const settings = settingsOf(call);
    if (client !== undefined) {
      const config = printConfig(client, words);
      return async () => config;
    }
    if (out.json)
      throw words.wrong('--json works only with --print-config: stdout carries the protocol');
    return async () => {
      await serve(call, settings);
      return { result: undefined, said: true };
    };
  },
};

function printConfig(client: string, words: Words): Answer {
  const row = Object.hasOwn(mcpClients, client) ? mcpClients[client] : undefined;
  if (!row) {
    const known = Object.keys(mcpClients).join(', ');
    throw words.wrong(`--print-config "${client}" is not one of ${known}`);
  }
  // Options beside --print-config are for the server.
  const given = words.again(['print-config', 'json'], {});
  const fitting = words.isTyped('max-output') ? [] : (row.args ?? []);
  const server = {
    command: process.execPath,
    args: [process.argv[1] ?? '', 'mcp', ...fitting, ...given],
  };
  const text = row.text(server);
  return {
    result: { client, place: row.place, text, ...server },
    lines: text.split('\n').map((line) => ({ text: line, printed: true })),
  };
}

function settingsOf({ words, caller }: Call) {
  const chat = words.text('chat');
  return {
    cancel: words.choice('cancel', ['detach', 'interrupt']) ?? 'detach',
    terminalIdleMs: words.durationMs('idle'),
    directory: resolve(caller.cwd, words.text('directory') ?? usualDirectory(caller)),
    maxOutputBytes: words.count('max-output'),
    maxWaitMs: words.durationMs('max-wait'),
    progressEveryMs: words.durationMs('progress'),
    chat,
    named: chat === undefined ? words.text('owner') : `chat:${chat}`,
    embed: words.flag('embed'),
  };
}

async function serve(
  { caller, out }: Call,
  settings: ReturnType<typeof settingsOf>,
): Promise<void> {
  const { cancel, terminalIdleMs, directory, maxOutputBytes, maxWaitMs } = settings;
  const { progressEveryMs, chat, embed } = settings;
  const owner = settings.named ?? (embed ? DEFAULT_OWNER : await defaultOwner(caller));
  if (process.stdin.isTTY)
    await out.note(
      'waiting for an MCP client on stdin; "holdfast mcp --print-config CLIENT" prints how to add it to one. Ctrl-D exits.',
    );
  const { createMcpServer } = await import('../../tools/mcp/server.ts');
  const { taskKeyIn } = await import('../../server/mcp/task-key.ts');
  const taskKey = (): string => taskKeyIn(openHome(caller.home).folder);
  const { serveStdio } = await import('@modelcontextprotocol/server/stdio');
  const { goAhead } = await import('../../system/priority.ts');
  const place = embed ? embedded(owner, caller) : local(owner, caller);
  let connected: Promise<Api> | undefined;
  const connection = (): Promise<Api> => {
    connected ??= place.connect();
    // The next call tries again.
    connected.catch(() => (connected = undefined));
    return connected;
  };
  const report = (error: unknown): void =>
    void out.note(error instanceof Error ? error.message : String(error));
  const handle = serveStdio(
    ({ era }) =>
      createMcpServer({
        connection,
        notifyAll: era === 'modern',
        era,
        ...(!embed && { taskKey }),
        directory,
        environment: { inherit: 'none' },
        // The client's environment, not that of the keeper.
        env: inheritedEnvironment(caller.env),
        by: owner,
        ...(chat !== undefined && { browserSession: chat }),
        ...(maxOutputBytes !== undefined && { maxOutputBytes }),
        ...(terminalIdleMs !== undefined && { terminalIdleMs }),
        cancelEndsProcess: cancel === 'interrupt',
        ...(progressEveryMs !== undefined && { progressEveryMs }),
        maxWaitMs,
        report,
      }),
    { onerror: report },
  );
  // As a server: a call waits for this program.
  goAhead();
  await waitForEnd();
  await handle.close();
  await (await connected?.catch(() => undefined))?.close();
  await place.forget();
}

/**
 * Where commands run by default. Some agents start the servers of a plugin in the folder of the plugin: commands belong
 * into the home directory then.
 */
function usualDirectory({ cwd, env }: Caller): string {
  const root = env['PLUGIN_ROOT'];
  const isInPlugin = root !== undefined && !relative(root, cwd).startsWith('..');
  return isInPlugin ? (env['HOME'] ?? '/') : '.';
}

/** Inside a process of this home the client's processes belong to the owner of that one. */
async function defaultOwner(caller: Caller): Promise<string> {
  if (caller.env[MARKER_NAME] === undefined) return DEFAULT_OWNER;
  const scope = await caller.scope().catch(() => undefined);
  await caller.close();
  return scope?.owner ?? DEFAULT_OWNER;
}

interface Place {
  connect(): Promise<Api>;
  forget(): Promise<void>;
}

/** The keeper itself: a server in between is one more program that has to be woken for each call. */
function local(owner: string, { home, env, keeperArgs }: Caller): Place {
  return {
    connect: async () => {
      const { keeperApi } = await import('../../server/keeper-api.ts');
      return keeperApi({ home, env, keeperArgs }, owner);
    },
    forget: () => Promise.resolve(),
  };
}

/** Its folder is removed at the end. */
function embedded(owner: string, { env, cwd }: Caller): Place {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-mcp-'));
  return {
    connect: async () => {
      const { embeddedApi } = await import('../../server/embedded-api.ts');
      return embeddedApi({ folder, env, cwd, owner });
    },
    forget: () => rm(folder, { recursive: true, force: true }),
  };
}

function waitForEnd(): Promise<void> {
  return new Promise((resolve) => {
    process.stdin.once('end', resolve).once('close', resolve);
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
      process.once(signal, () => resolve());
  });
}
