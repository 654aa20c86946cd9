// `holdfast serve`

import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { ServerOptions } from '../../server/server.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { isError, type Caller } from '../caller.ts';
import type { Answer, Command } from '../arguments/command.ts';
import type { Output } from '../output/output.ts';
import { selfCommand } from '../surroundings.ts';
import { MOST_PORT, shellWord, Words } from '../arguments/words.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'serve',
  usage: '[--port N] [--host ADDR] [--socket PATH|none]',
  summary: summaries.serve,
  options: {
    port: { type: 'string', value: 'N', about: 'TCP port (default 0: any free port)' },
    host: { type: 'string', value: 'ADDR', about: 'IP address to bind to (default 127.0.0.1)' },
    socket: {
      type: 'string',
      value: 'PATH',
      about: 'unix socket (default server.sock in the home), or "none"',
    },
    'token-file': {
      type: 'string',
      value: 'FILE',
      about: 'accept the secret in this file as an admin token; it is created if missing',
    },
    directory: {
      type: 'string',
      value: 'DIR',
      completes: 'directory',
      about: 'default directory of commands from coder, codex and MCP (default ~)',
    },
    'allow-host': {
      type: 'string',
      multiple: true,
      value: 'NAME',
      about: 'allow one more Host header (with port if sent), for a reverse proxy',
    },
    'completion-webhook': {
      type: 'string',
      value: 'URL',
      about: 'POST every process exit here until it answers 2xx; signed with webhook.key',
    },
    'completion-webhook-insecure': {
      type: 'boolean',
      about: 'allow plain HTTP to another machine for the webhook',
    },
    'allow-remote': {
      type: 'boolean',
      about: 'allow an address that other machines can reach; put TLS in front of it',
    },
    'allow-origin': {
      type: 'string',
      multiple: true,
      value: 'ORIGIN',
      about: 'allow requests from web pages of this origin, such as http://127.0.0.1:8080',
    },
    resume: {
      type: 'boolean',
      about: 'reuse the port and options of a server that crashed here',
    },
    'insecure-no-auth': {
      type: 'boolean',
      about: 'require no token: every local user can run commands as you; loopback only',
    },
  },
  notes: [
    'Every request needs "Authorization: Bearer TOKEN"; "holdfast token admin" prints a token.',
    'The socket in the home needs none: only you can reach it.',
    'SIGTERM and Ctrl-C end only the server: the keeper and its processes keep running.',
  ],
  read({ words, caller, out }) {
    words.expect();
    const read = (given: Words): ServerOptions => optionsOf(given, caller, out);
    // Options given now come last: they override those of the crashed server.
    const now = [...againOf(words, caller), ...portOf(words)];
    const options: ServerOptions = {
      ...read(words),
      ...(words.flag('resume') && {
        resume: (last) => read(new Words(command, [...last, ...now])),
      }),
    };
    // What a program inside a process says of ports and tokens counts for nothing.
    const anyWillDo = words.flag('resume') && now.length === 0;
    return async () => {
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
      process.title = 'hf-server';
      goAhead();
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
      else
        for (const line of greeting(
          { ...ready, openToAll: server.openToAll },
          selfCommand(caller.env),
        ))
          await out.line(line);
      const signal = terminated.signal.aborted ? 'SIGTERM' : await waitForEnd();
      await server.close();
      if (signal === 'SIGTERM' && !out.json)
        await out.note(
          'ended by SIGTERM; the processes keep running. "holdfast status" shows whether another server runs.',
        );
      return { result: { ...ready, signal }, said: true };
    };
  },
};

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

function optionsOf(words: Words, caller: Caller, out: Output): ServerOptions {
  const [port, address, socket, tokenFile, directory, hook] = [
    words.count('port', MOST_PORT),
    words.text('host'),
    words.text('socket'),
    words.text('token-file'),
    words.text('directory'),
    words.text('completion-webhook'),
  ];
  return {
    home: caller.home,
    env: caller.env,
    keeperArgs: caller.keeperArgs,
    ...(port !== undefined && { port }),
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
    report: (message: string) => void out.note(message),
    again: againOf(words, caller),
  };
}

/** The options for a server that replaces this one, independent of the directory. */
function againOf(words: Words, { cwd }: Caller): string[] {
  const path = (text: string): string => resolve(cwd, text);
  return words.again(['port', 'home', 'json', 'owner', 'resume'], {
    socket: (text) => (text === 'none' ? text : path(text)),
    'token-file': path,
    directory: path,
  });
}

function portOf(words: Words): string[] {
  const port = words.text('port');
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
    ...(openToAll || tokenFile !== null
      ? []
      : [`The port needs a token. This prints one:  ${cli} token admin${elsewhere}`]),
    '',
    `Ctrl-C ends the server; its processes keep running. To end everything:  ${cli} shutdown${elsewhere}`,
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
