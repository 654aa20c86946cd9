// `holdfast serve`

import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { systemClock } from '../../base/clock.ts';
import type { RunningServer, ServerOptions } from '../../server/server.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { parseLogSettings } from '../../protocol/observe/log-settings.ts';
import { isError, type Caller } from '../caller.ts';
import type { Answer, Command } from '../arguments/command.ts';
import type { Output } from '../output/output.ts';
import { selfCommand } from '../surroundings.ts';
import { shellWord, Words } from '../arguments/words.ts';
import { settingOptions } from '../settings/setting.ts';
import { MOST_PORT } from '../settings/table.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'serve',
  usage: '[--port N] [--host ADDR] [--socket PATH|none]',
  summary: summaries.serve,
  examples: ['holdfast serve --port 4100', 'holdfast serve --allow-host holdfast.example'],
  options: {
    ...settingOptions('serve'),
    resume: {
      type: 'boolean',
      about: 'reuse the port and options of a server that crashed here',
    },
    'last-port': {
      type: 'string',
      hidden: true,
      about: 'port of the server before: taken when nothing else names one',
    },
  },
  settings: ['serve', 'keeper', 'log'],
  notes: [
    'Every request needs "Authorization: Bearer TOKEN"; "holdfast token admin" prints a token.',
    'The socket in the home needs none: only you can reach it.',
    'SIGTERM and Ctrl-C end only the server: the keeper and its processes keep running.',
  ],
  read({ words, caller, out }) {
    words.expect();
    const read = (given: Words): ServerOptions =>
      optionsOf(given, caller, (message) => void out.note(message));
    // Options given now come last: they override those of the crashed server.
    const now = [...againOf(words, caller), ...portOf(words)];
    const options: ServerOptions = {
      ...read(words),
      ...(words.flag('resume') && {
        resume: (last) => read(words.with([...last, ...now])),
      }),
    };
    // What a program inside a process says of ports and tokens counts for nothing.
    const anyWillDo = words.flag('resume') && now.length === 0;
    return () => runServer(options, { caller, out, anyWillDo });
  },
};

/** Serves until SIGTERM or Ctrl-C. */
export async function runServer(
  options: ServerOptions,
  {
    caller,
    out,
    anyWillDo = false,
  }: { readonly caller: Caller; readonly out: Output; readonly anyWillDo?: boolean },
): Promise<Answer> {
  const { startServer } = await import('../../server/server.ts');
  const { goAhead } = await import('../../system/priority.ts');
  const terminated = new AbortController();
  // Until the server is ready, SIGTERM ends it at the next safe point; a second one ends it at once.
  process.once('SIGTERM', () => terminated.abort());
  const starting = startServer({ ...options, signal: terminated.signal });
  const server = await starting.catch(async (error: unknown) => {
    if (!anyWillDo || !isError(error, 'from_inside')) throw error;
    return undefined;
  });
  if (!server) return startedByKeeper(caller, out);
  process.title = options.gateway ? 'hf-gateway' : 'hf-server';
  goAhead();
  server.loadLateModules();
  const leave = options.gateway ? undefined : await followFleet(server);
  const { url, tokenFile = null, keeperPid, home, version } = server;
  const ready = {
    url,
    socket: server.socket ?? null,
    tokenFile,
    pid: process.pid,
    keeperPid,
    home,
    version,
  };
  if (out.json) await out.object(ready);
  else {
    const greet = options.gateway ? gatewayGreeting : greeting;
    const { openToAll } = server;
    for (const line of greet({ ...ready, openToAll }, selfCommand(caller.env)))
      await out.line(line);
  }
  const signal = terminated.signal.aborted ? 'SIGTERM' : await waitForEnd();
  await leave?.();
  await server.close();
  if (signal === 'SIGTERM' && !out.json && !options.gateway)
    await out.note(
      'ended by SIGTERM; the processes keep running. "holdfast status" shows whether another server runs.',
    );
  return { result: { ...ready, signal }, said: true };
}

/** The fleet is loaded when the home has, or gets, a membership. Returns a function that leaves. */
async function followFleet(server: RunningServer): Promise<() => Promise<void>> {
  const { host, home, report, serveStream: serve } = server;
  const { onMembership } = await import('../local/membership.ts');
  return onMembership(home, async () => {
    const { followMembership } = await import('../../fleet/member/membership.ts');
    return followMembership({ home, host, report, serve, clock: systemClock });
  });
}

/** A program inside a process of this home needs a server: one that speaks for every owner is the keeper's to start. */
async function startedByKeeper(caller: Caller, out: Output): Promise<Answer> {
  const { serve } = await caller.host();
  const ready = await serve?.();
  if (!ready)
    throw new HoldfastError('keeper_too_old', 'The running keeper cannot start a server.');
  if (out.json) await out.object(ready);
  else await out.line('The keeper started a server in the background.');
  return { result: ready, said: true };
}

/** The options of a server, without those that a gateway does not have. */
export function optionsOf(
  words: Words,
  caller: Caller,
  report: (message: string) => void,
): ServerOptions {
  const [port, address, socket, tokenFile, directory, hook, bubblewrap] = [
    words.count('port', MOST_PORT) ?? words.count('last-port', MOST_PORT),
    words.text('host'),
    words.text('socket'),
    words.text('token-file'),
    words.text('directory'),
    words.text('completion-webhook'),
    words.text('bubblewrap'),
  ];
  const limitsTotal = words.limits('limits-total');
  return {
    ...(limitsTotal && { limitsTotal }),
    home: caller.home,
    env: caller.env,
    keeperArgs: caller.keeperArgs,
    ...(port !== undefined && { port }),
    portIsTyped: words.isTyped('port'),
    handOver: words.flag('handover', true),
    ...(bubblewrap !== undefined && { bubblewrap }),
    ...(address !== undefined && { address }),
    ...(socket !== undefined && { socket }),
    ...(tokenFile !== undefined && { tokenFile: resolve(caller.cwd, tokenFile) }),
    // A relative path would count from the keeper's directory.
    ...(directory !== undefined && { defaultDirectory: resolve(caller.cwd, directory) }),
    ...(hook !== undefined && {
      webhook: { url: hook, insecure: words.flag('completion-webhook-insecure') },
    }),
    allowHosts: words.texts('allow-host'),
    openToAll: words.flag('insecure-no-auth'),
    allowRemote: words.flag('allow-remote'),
    origins: words.texts('allow-origin'),
    report,
    log: parseLogSettings(words.text('level'), words.text('format')),
    again: againOf(words, caller),
  };
}

/** The options for a server that replaces this one, independent of the directory. */
function againOf(words: Words, { cwd }: Caller, without: readonly string[] = []): string[] {
  const path = (text: string): string => resolve(cwd, text);
  const never = ['port', 'last-port', 'home', 'json', 'owner', 'resume'];
  return words.again([...never, ...without], {
    socket: (text) => (text === 'none' ? text : path(text)),
    'token-file': path,
    directory: path,
  });
}

/** The checked options, as words for a server that the keeper starts. */
export function serverArguments(words: Words, caller: Caller): string[] {
  optionsOf(words, caller, () => undefined);
  return [...againOf(words, caller, ['grace']), ...portOf(words)];
}

/** Only what was typed: the next server reads variables and the file itself. */
function portOf(words: Words): string[] {
  const port = words.isTyped('port') ? words.text('port') : undefined;
  return port === undefined ? [] : ['--port', port];
}

interface Ready {
  readonly url: string;
  readonly socket: string | null;
  readonly tokenFile: string | null;
  readonly keeperPid: number;
  readonly home: string;
  readonly openToAll: boolean;
}

function greeting(ready: Ready, cli: string): string[] {
  const { url, socket, tokenFile, keeperPid, home, openToAll } = ready;
  const elsewhere = home === join(homedir(), '.holdfast') ? '' : ` --home ${shellWord(home)}`;
  return [
    `Holdfast serves ${url}${socket === null ? '' : ` and ${socket}`} (keeper ${keeperPid}).`,
    ...(openToAll
      ? ['WARNING: no token is required. Every local user can run commands as you.']
      : []),
    '',
    'Try it from another terminal:',
    `  ${curlTo(ready, `${cli} token admin${elsewhere}`)}/v1/run -H 'Content-Type: application/json' -d '{"command":"echo hello"}'`,
    `  ${cli} run${elsewhere} 'echo hello'`,
    `  ${cli} dashboard${elsewhere}`,
    `The documentation is at ${url}/docs`,
    ...(openToAll || tokenFile !== null
      ? []
      : [`The port needs a token. This prints one:  ${cli} token admin${elsewhere}`]),
    '',
    `Ctrl-C ends the server; its processes keep running. To end everything:  ${cli} shutdown${elsewhere}`,
  ];
}

function gatewayGreeting({ url, home, openToAll }: Ready, cli: string): string[] {
  return [
    `Holdfast serves the fleet at ${url}.`,
    ...(openToAll
      ? ['WARNING: no token is required. Every local user can run commands on every host.']
      : [`This prints a token:  ${cli} token admin --home ${shellWord(home)}`]),
    `The hosts:  ${cli} fleet hosts`,
  ];
}

/** Through the socket where there is one: it needs no token. */
function curlTo({ url, socket, tokenFile, openToAll }: Ready, tokenCommand: string): string {
  if (openToAll) return `curl -s ${shellWord(url)}`;
  if (socket !== null && tokenFile === null)
    return `curl -s --unix-socket ${shellWord(socket)} http://localhost`;
  const token = tokenFile === null ? tokenCommand : `cat ${shellWord(tokenFile)}`;
  // The header comes from stdin: every local user can read the arguments of curl.
  return `${token} | sed 's/^/Authorization: Bearer /' | curl -s -H @- ${shellWord(url)}`;
}

function waitForEnd(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const)
      process.once(signal, () => resolve(signal));
    process.on('SIGHUP', () => undefined);
    // Without a handler SIGUSR1 opens Node's debugger to every local user.
    process.on('SIGUSR1', () => undefined);
  });
}
