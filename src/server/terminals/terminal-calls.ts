// What the native operations on terminals ask of the host and of the screens.

import type { ServerResponse } from 'node:http';
import { stripAnsi } from '../../base/ansi.ts';
import type { Clock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { EVERYONE, type HostApi } from '../../protocol/host-api.ts';
import type { RunResult } from '../../protocol/run.ts';
import type { Pictures } from '../../screen/pictures.ts';
import { invalid } from '../native-input.ts';
import type { Calls, NativeCall } from '../native-call.ts';
import { parseBatch, runBatch } from './batch.ts';
import { recordTerminal } from './recording.ts';
import { structuredSnapshot, textSnapshot } from './snapshot-shape.ts';
import type { TerminalSession } from './terminal-session.ts';
import type { RunWithOutput } from './terminal-shapes.ts';
import type { Terminals } from './terminals.ts';

export interface TerminalCallOptions {
  readonly host: HostApi;
  readonly terminals: Terminals;
  readonly clock: Clock;
  /** The shell of whoever runs the server. */
  readonly shell: string;
}

type Target = Pick<NativeCall<'getTerminal'>, 'owner' | 'id'>;

export function terminalCalls(options: TerminalCallOptions) {
  const { host, terminals } = options;
  const open = ({ owner, id }: Target): Promise<TerminalSession> => terminals.open(owner.sees, id);
  return {
    openTerminal: async ({ owner, body: { argv = [options.shell], marks = true, ...spec } }) => {
      const started = await host.start(owner.starts, { ...spec, argv, marks, streams: 'pty' });
      await terminals.of(started.process);
      return started;
    },
    listTerminals: async ({ owner, query: { owner: _owner, ...filter } }) => {
      const { processes } = await host.list(owner.sees, filter);
      const found = processes.filter(({ streams }) => streams === 'pty');
      return { processes: found, total: found.length };
    },
    getTerminal: async (call) => (await open(call)).info(),
    closeTerminal: async ({ owner, id }) => {
      const process = await host.get(owner.sees, { id });
      const removed = await host.remove(process.owner, { id, force: true });
      await terminals.forget(process);
      return removed;
    },
    runInTerminal: async (call) => {
      const session = await open(call);
      return withOutput(session, await session.run(call.body, call.exchange.gone));
    },
    waitForRun: async (call) => {
      const session = await open(call);
      const run = call.exchange.params['run'] ?? '';
      const params = { id: session.id, run, timeoutMs: call.query.timeoutMs };
      return withOutput(session, await host.runWait(session.owner, params, call.exchange.gone));
    },
    markTerminal: ({ owner, id, body }) => host.mark(owner.sees, { id, ...body }),
    resizeTerminal: ({ owner, id, body }) => host.resize(owner.sees, { id, ...body }),
    signalTerminal: ({ owner, id, body }) => {
      const by = body.by ?? (owner.sees === EVERYONE ? 'api' : owner.sees);
      const reach = body.reach ?? (body.signal === 'terminate' ? 'all' : 'foreground');
      return host.signal(owner.sees, { id, ...body, by, reach });
    },
    ...lookCalls(open),
    ...pictureCalls(options, open),
  } satisfies Partial<Calls>;
}

function lookCalls(open: (target: Target) => Promise<TerminalSession>) {
  return {
    terminalInput: async (call) => {
      const { text, base64, paste, keys, writeId } = call.body;
      const given = [text, base64, paste, keys].filter((each) => each !== undefined);
      if (given.length !== 1)
        throw invalid('Give exactly one of "text", "base64", "paste" and "keys".');
      const session = await open(call);
      if (paste !== undefined) return session.paste(paste, writeId);
      if (keys !== undefined) return session.keys(keys, writeId);
      return session.type(
        base64 === undefined ? (text ?? '') : Buffer.from(base64, 'base64'),
        writeId,
      );
    },
    waitForScreen: async (call) => {
      const { timeoutMs, afterSeq, ...condition } = call.body;
      if (condition.text !== undefined && condition.regex !== undefined)
        throw invalid('is given together with "text"', 'regex');
      if (Object.keys(condition).length === 0) throw invalid('There is nothing to wait for.');
      const session = await open(call);
      const limits = {
        ...(timeoutMs !== undefined && { timeoutMs }),
        ...(afterSeq !== undefined && { afterSeq }),
      };
      const { snapshot, ...waited } = await session.wait(given(condition), {
        ...limits,
        signal: call.exchange.gone,
      });
      return { ...waited, snapshot: textSnapshot(session.id, snapshot) };
    },
    snapshotTerminal: async (call) => {
      const { format = 'structured', scrollback = false, cells = false, at } = call.query;
      const session = await open(call);
      const shot = await session.snapshot({ scrollback, ...(at !== undefined && { at }) });
      return format === 'text'
        ? textSnapshot(session.id, shot)
        : structuredSnapshot(session.id, shot, { scrollback, cells });
    },
    attachTerminal: () =>
      Promise.reject(
        new HoldfastError('invalid_input', 'Ask for a WebSocket: "Upgrade: websocket".'),
      ),
    batchTerminal: async (call) => {
      const steps = parseBatch(call.body.steps);
      const session = await open(call);
      const keepGoing = call.body.keepGoing ?? false;
      return runBatch(session, steps, { keepGoing, signal: call.exchange.gone });
    },
  } satisfies Partial<Calls>;
}

function pictureCalls(
  { terminals, clock }: TerminalCallOptions,
  open: (target: Target) => Promise<TerminalSession>,
) {
  return {
    screenshotTerminal: async (call) => {
      const { format = 'png', at, owner: _owner, ...options } = call.query;
      const session = await open(call);
      const shot = await session.snapshot({ ...(at !== undefined && { at }) });
      const [media, bytes] = await paint(format, shot, given(options), () => terminals.pictures());
      send(call.exchange.response, media, bytes, { 'Holdfast-Seq': String(shot.seq) });
    },
    recordTerminal: async (call) => {
      const { format = 'asciicast', owner: _owner, ...options } = call.query;
      const session = await open(call);
      const request = { format, ...given(options), signal: call.exchange.gone };
      const { media, bytes } = await recordTerminal(session, request, clock);
      send(call.exchange.response, media, bytes);
    },
  } satisfies Partial<Calls>;
}

/** As the format is asked for: its media type and its bytes. */
export async function paint(
  format: 'png' | 'svg' | 'html',
  shot: Awaited<ReturnType<TerminalSession['snapshot']>>,
  options: Parameters<Pictures['png']>[1] & object,
  pictures: () => Promise<Pictures>,
): Promise<[string, Buffer]> {
  if (format === 'png') return ['image/png', (await (await pictures()).png(shot, options)).png];
  if (format === 'svg') {
    const { renderSvg } = await import('../../screen/svg.ts');
    return ['image/svg+xml; charset=utf-8', Buffer.from(renderSvg(shot, options))];
  }
  const { renderHtml } = await import('../../screen/html.ts');
  return ['text/html; charset=utf-8', Buffer.from(renderHtml(shot, options))];
}

/** Made of what programs print: never run, never framed, never guessed to be something else. */
function send(
  response: ServerResponse,
  media: string,
  bytes: Buffer,
  more: Record<string, string> = {},
): void {
  response.writeHead(200, {
    'Content-Type': media,
    'Content-Length': bytes.length,
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    'Content-Security-Policy': "sandbox; default-src 'none'; style-src 'unsafe-inline'",
    ...more,
  });
  response.end(bytes);
}

export async function withOutput(
  session: TerminalSession,
  result: RunResult,
): Promise<RunWithOutput> {
  const output = result.completion === 'marks' ? await session.runOutput(result) : undefined;
  if (!output) return result;
  return { ...result, output: stripAnsi(output.toString('utf8')).replaceAll('\r\n', '\n') };
}

/** Without the fields that were not given. */
function given<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]: Exclude<T[K], undefined> };
}
