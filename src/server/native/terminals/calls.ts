// What the native operations on terminals call on the host and on the screens.

import { omitUndefined } from '../../../base/omit-undefined.ts';
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
type Look = Pick<NativeCall<'getTerminal'>, 'owner' | 'id' | 'exchange'>;

export function terminalCalls(options: TerminalCallOptions & { readonly startRate: StartRate }) {
  const { host, terminals, startRate } = options;
  const terminalsOf = ({ owner }: Pick<Target, 'owner'>) => inProcessTerminals(options, owner);
  return {
    openTerminal: async (call) => {
      await startRate.admit(call.exchange.caller);
      return terminalsOf(call).open(omitUndefined(call.body));
    },
    listTerminals: async ({ owner, query: { owner: _owner, ...filter } }) => {
      const processes = await listAll((page) => host.list(owner.sees, page), filter);
      const found = processes.filter(({ streams }) => streams === 'pty');
      return { processes: found, total: found.length };
    },
    getTerminal: async ({ owner, id }) => (await terminals.open(owner.sees, id)).info(),
    closeTerminal: (call) => terminalsOf(call).close(call.id),
    runInTerminal: (call) =>
      terminalsOf(call).run({ id: call.id, ...call.body }, call.exchange.gone),
    waitForRun: (call) => {
      const { id, exchange, query } = call;
      const params = { id, run: exchange.params['run'] ?? '', timeoutMs: query.timeoutMs };
      return terminalsOf(call).waitForRun(params, exchange.gone);
    },
    markTerminal: (call) => terminalsOf(call).mark({ id: call.id, ...call.body }),
    resizeTerminal: ({ owner, id, body }) => host.resize(owner.sees, { id, ...body }),
    signalTerminal: ({ owner, id, body }) => {
      const by = body.by ?? (owner.sees === EVERYONE ? 'api' : owner.sees);
      const reach = body.reach ?? (body.signal === 'terminate' ? 'all' : 'foreground');
      return host.signal(owner.sees, { id, ...body, by, reach });
    },
    terminalInput: (call) => terminalsOf(call).input(call.id, omitUndefined(call.body)),
    waitForScreen: (call) =>
      terminalsOf(call).waitForScreen(call.id, omitUndefined(call.body), call.exchange.gone),
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
    ...lookCalls(options, terminalsOf),
  } satisfies Partial<Calls>;
}

function lookCalls(
  { terminals }: TerminalCallOptions,
  terminalsOf: (target: Target) => InProcessTerminals,
) {
  /** Before anything is made. A small answer waits for no turn. */
  const begin = async ({ exchange, owner, id }: Look, scrollback: boolean): Promise<void> => {
    exchange.unread.admit(exchange.caller.tokenId);
    const session = await terminals.open(owner.sees, id);
    if (await session.isLarge(scrollback)) await exchange.unread.begin(exchange);
  };
  return {
    snapshotTerminal: async (call) => {
      const { format = 'structured', scrollback = false, cells = false, at } = call.query;
      const signal = call.exchange.gone;
      const look = { scrollback, ...(at !== undefined && { at }) };
      await begin(call, scrollback);
      if (format === 'text') return terminalsOf(call).snapshot(call.id, look, signal);
      const session = await terminals.open(call.owner.sees, call.id);
      const shape = { sessionId: session.id, include: { scrollback, cells } };
      const json = await terminals.look(session, { ...look, signal }, (view, pictures) =>
        pictures.structured(view, shape),
      );
      return sendBytes(call.exchange, JSON_HEADERS, json);
    },
    screenshotTerminal: async (call) => {
      const { owner: _owner, ...query } = call.query;
      const { gone } = call.exchange;
      await begin(call, false);
      const { media, bytes, seq, missing } = await terminalsOf(call).screenshot(
        call.id,
        omitUndefined(query),
        gone,
      );
      return sendMedia(call.exchange, media, bytes, {
        'Holdfast-Seq': String(seq),
        ...(missing > 0 && { [MISSING_HEADER]: String(missing) }),
      });
    },
    recordTerminal: async (call) => {
      const { format = 'asciicast', owner: _owner, ...options } = call.query;
      const { exchange, id } = call;
      exchange.unread.admit(exchange.caller.tokenId);
      const { media } = recordingKinds[format];
      const request = { format, ...omitUndefined(options), signal: exchange.gone };
      if (!isCast(request))
        return sendMedia(exchange, media, await terminalsOf(call).recording(id, request));
      const session = await terminals.open(call.owner.sees, id);
      const headers = { 'Content-Type': media, ...MEDIA_HEADERS };
      await terminals.recordingTurn(session.owner, exchange.gone, () =>
        sendLines(exchange, headers, castLines(session, request, terminals)),
      );
      return undefined;
    },
  } satisfies Partial<Calls>;
}

/** The content comes from programs: it is never executed, framed or sniffed. */
const MEDIA_HEADERS = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "sandbox; default-src 'none'; style-src 'unsafe-inline'",
};

function sendMedia(
  exchange: Exchange,
  media: string,
  bytes: Buffer,
  more: Record<string, string> = {},
): Promise<undefined> {
  return sendBytes(exchange, { 'Content-Type': media, ...MEDIA_HEADERS, ...more }, bytes);
}
