// What the native operations on terminals ask of the host and of the screens.

import { MISSING_HEADER } from '../../../client/terminal-api.ts';
import { listAll } from '../../../protocol/list-all.ts';
import { HoldfastError } from '../../../protocol/errors.ts';
import { EVERYONE } from '../../../protocol/host-api.ts';
import { JSON_HEADERS, sendBytes, sendLines } from '../../http/unread-answers.ts';
import type { Calls, NativeCall } from '../call.ts';
import type { Exchange } from '../../http/router.ts';
import type { StartRate } from '../../start-rate.ts';
import { parseBatch, runBatch } from '../../../terminals/batch.ts';
import { castLines, isCast, recordingKinds } from '../../../terminals/recording.ts';
import {
  inProcessTerminals,
  type InProcessTerminals,
  type TerminalCallOptions,
} from '../../../terminals/in-process-terminals.ts';

type Target = Pick<NativeCall<'getTerminal'>, 'owner' | 'id'>;

export function terminalCalls(options: TerminalCallOptions & { readonly startRate: StartRate }) {
  const { host, terminals, startRate } = options;
  const seen = ({ owner }: Pick<Target, 'owner'>) => inProcessTerminals(options, owner);
  return {
    openTerminal: async (call) => {
      await startRate.admit(call.exchange.caller);
      return seen(call).open(given(call.body));
    },
    listTerminals: async ({ owner, query: { owner: _owner, ...filter } }) => {
      const processes = await listAll((page) => host.list(owner.sees, page), filter);
      const found = processes.filter(({ streams }) => streams === 'pty');
      return { processes: found, total: found.length };
    },
    getTerminal: async ({ owner, id }) => (await terminals.open(owner.sees, id)).info(),
    closeTerminal: (call) => seen(call).close(call.id),
    runInTerminal: (call) => seen(call).run({ id: call.id, ...call.body }, call.exchange.gone),
    waitForRun: (call) => {
      const { id, exchange, query } = call;
      const params = { id, run: exchange.params['run'] ?? '', timeoutMs: query.timeoutMs };
      return seen(call).waitForRun(params, exchange.gone);
    },
    markTerminal: (call) => seen(call).mark({ id: call.id, ...call.body }),
    resizeTerminal: ({ owner, id, body }) => host.resize(owner.sees, { id, ...body }),
    signalTerminal: ({ owner, id, body }) => {
      const by = body.by ?? (owner.sees === EVERYONE ? 'api' : owner.sees);
      const reach = body.reach ?? (body.signal === 'terminate' ? 'all' : 'foreground');
      return host.signal(owner.sees, { id, ...body, by, reach });
    },
    terminalInput: (call) => seen(call).input(call.id, given(call.body)),
    waitForScreen: (call) =>
      seen(call).waitForScreen(call.id, given(call.body), call.exchange.gone),
    attachTerminal: () =>
      Promise.reject(
        new HoldfastError('invalid_input', 'Ask for a WebSocket: "Upgrade: websocket".'),
      ),
    batchTerminal: async ({ owner, id, body, exchange }) => {
      const steps = parseBatch(body.steps);
      const session = await terminals.open(owner.sees, id);
      const keepGoing = body.keepGoing ?? false;
      return runBatch(session, steps, { keepGoing, signal: exchange.gone });
    },
    ...lookCalls(options, seen),
  } satisfies Partial<Calls>;
}

function lookCalls(
  { terminals }: TerminalCallOptions,
  seen: (target: Target) => InProcessTerminals,
) {
  return {
    snapshotTerminal: async (call) => {
      const { format = 'structured', scrollback = false, cells = false, at } = call.query;
      const signal = call.exchange.gone;
      const look = { scrollback, ...(at !== undefined && { at }) };
      if (format === 'text') return seen(call).snapshot(call.id, look, signal);
      const session = await terminals.open(call.owner.sees, call.id);
      const asked = { sessionId: session.id, include: { scrollback, cells } };
      const json = await terminals.look(session, { ...look, signal }, (view, made) =>
        made.structured(view, asked),
      );
      return sendBytes(call.exchange, JSON_HEADERS, json);
    },
    screenshotTerminal: async (call) => {
      const { owner: _owner, ...query } = call.query;
      const { gone } = call.exchange;
      const { media, bytes, seq, missing } = await seen(call).screenshot(
        call.id,
        given(query),
        gone,
      );
      return sendMade(call.exchange, media, bytes, {
        'Holdfast-Seq': String(seq),
        ...(missing > 0 && { [MISSING_HEADER]: String(missing) }),
      });
    },
    recordTerminal: async (call) => {
      const { format = 'asciicast', owner: _owner, ...options } = call.query;
      const { exchange, id } = call;
      const { media } = recordingKinds[format];
      const request = { format, ...given(options), signal: exchange.gone };
      if (!isCast(request))
        return sendMade(exchange, media, await seen(call).recording(id, request));
      const session = await terminals.open(call.owner.sees, id);
      const headers = { 'Content-Type': media, ...MADE_HEADERS };
      await terminals.recordingTurn(session.owner, exchange.gone, () =>
        sendLines(exchange, headers, castLines(session, request, terminals)),
      );
      return undefined;
    },
  } satisfies Partial<Calls>;
}

/** Made of what programs print: never run, never framed, never guessed to be something else. */
const MADE_HEADERS = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "sandbox; default-src 'none'; style-src 'unsafe-inline'",
};

function sendMade(
  exchange: Exchange,
  media: string,
  bytes: Buffer,
  more: Record<string, string> = {},
): Promise<undefined> {
  return sendBytes(exchange, { 'Content-Type': media, ...MADE_HEADERS, ...more }, bytes);
}

/** Without the fields that were not given. */
function given<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]: Exclude<T[K], undefined> };
}
