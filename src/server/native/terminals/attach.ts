// A WebSocket on a terminal: it sends events as they happen and types what it receives. A client that reconnects continues
// after the last event it got.
//
//   to the client    binary: the number of the event (8 bytes, little-endian), then output bytes
//                    text: JSON with "type": hello, event, missed, problem, end
//   to the server    binary: bytes to type
//                    text: JSON with "type": keys, paste, resize, signal

import type { RawData, WebSocket } from 'ws';
import { toErrorShape, HoldfastError } from '../../../protocol/errors.ts';
import type { HostApi, Page } from '../../../protocol/host-api.ts';
import { followEvents, type Position } from '../../../base/follow-events.ts';
import { decodeRecords } from '../../../protocol/record.ts';
import { nativeEvent } from '../events.ts';
import { nativeOwner } from '../owner.ts';
import type { SocketRequest, SocketRow } from '../../http/router.ts';
import type { TerminalSession } from '../../../terminals/terminal-session.ts';
import type { Terminals } from '../../../terminals/terminals.ts';

export interface AttachOptions {
  readonly host: HostApi;
  readonly terminals: Terminals;
}

const MAX_MESSAGE_BYTES = 1024 * 1024;
/** Small enough for thousands of clients, large enough that a flood needs few reads. */
const PAGE_BYTES = 128 * 1024;
const WAIT_MS = 25_000;
const SEQ_BYTES = 8;
/** When the program has not taken more than this, nothing more is read from the client. */
const MAX_WAITING_BYTES = 256 * 1024;

export function attachRow(options: AttachOptions): SocketRow {
  return {
    maxMessageBytes: MAX_MESSAGE_BYTES,
    load: async () => (socket, request) => void attach(socket, request, options),
  };
}

async function attach(
  socket: WebSocket,
  request: SocketRequest,
  { host, terminals }: AttachOptions,
): Promise<void> {
  const gone = new AbortController();
  socket.on('close', () => gone.abort());
  socket.on('error', () => gone.abort());
  const early: [RawData, boolean][] = [];
  const holdBack = (data: RawData, binary: boolean): unknown => {
    // Messages that were already read still arrive; the rest waits at the client.
    socket.pause();
    return early.push([data, binary]);
  };
  socket.on('message', holdBack);
  try {
    const { sees } = nativeOwner(request);
    const session = await terminals.open(sees, request.params['id'] ?? '');
    const readOnly = request.query.get('readOnly') === 'true';
    const client = new AttachedClient(socket, session, { host, terminals, readOnly });
    const [after, shown] = [numberOf(request.query, 'after'), numberOf(request.query, 'at')];
    const from = await client.hello(after, shown);
    socket.off('message', holdBack);
    socket.on('message', (data, binary) => client.message(data, binary));
    if (socket.isPaused) socket.resume();
    for (const [data, binary] of early) client.message(data, binary);
    await client.follow(from, gone.signal);
    socket.close(1000);
  } catch (error) {
    if (gone.signal.aborted) return;
    socket.send(JSON.stringify({ type: 'problem', error: toErrorShape(error) }));
    socket.close(1011);
  }
}

function numberOf(query: URLSearchParams, field: 'after' | 'at'): number | undefined {
  const text = query.get(field);
  if (text === null) return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  const problem = `"${field}": must be the number of an event`;
  throw new HoldfastError('invalid_input', problem, { field });
}

class AttachedClient {
  private readonly socket: WebSocket;
  private readonly session: TerminalSession;
  private readonly host: HostApi;
  private readonly readOnly: boolean;
  private readonly terminals: Terminals;
  /** Handles messages in order. */
  private turn: Promise<void> = Promise.resolve();
  private waitingBytes = 0;

  constructor(
    socket: WebSocket,
    session: TerminalSession,
    { host, terminals, readOnly }: AttachOptions & { readonly readOnly: boolean },
  ) {
    this.socket = socket;
    this.session = session;
    this.host = host;
    this.terminals = terminals;
    this.readOnly = readOnly;
  }

  /** A new client gets the screen, now or after the event `at`; one that reconnects continues after its last event. */
  async hello(after: number | undefined, at: number | undefined): Promise<number> {
    const { session } = this;
    const { size } = await session.info();
    if (after !== undefined) {
      this.sendJson({ type: 'hello', id: session.id, size, seq: after });
      return after;
    }
    const { seq, screen } = await this.terminals.look(
      session,
      { behind: true, ...(at !== undefined && { at }) },
      async (view, pictures) => ({ seq: view.seq, screen: await pictures.repaint(view) }),
    );
    this.sendJson({ type: 'hello', id: session.id, size, seq, screen });
    return seq;
  }

  async follow(from: number, signal: AbortSignal): Promise<void> {
    const { owner, id } = this.session;
    const size = { maxBytes: PAGE_BYTES, waitMs: WAIT_MS };
    const read = (position: Position): Promise<Page> =>
      this.host.read(owner, { id, ...position, ...size }, signal);
    for await (const page of followEvents(read, { after: from })) await this.sendPage(page);
  }

  message(data: RawData, binary: boolean): void {
    const bytes = Buffer.isBuffer(data)
      ? data
      : Buffer.concat(Array.isArray(data) ? data : [Buffer.from(data)]);
    this.waitingBytes += bytes.length;
    if (this.waitingBytes > MAX_WAITING_BYTES) this.socket.pause();
    this.turn = this.turn
      .then(() => this.apply(bytes, binary))
      .catch((error: unknown) => {
        this.sendJson({ type: 'problem', error: toErrorShape(error) });
      })
      .then(() => {
        this.waitingBytes -= bytes.length;
        if (this.socket.isPaused && this.waitingBytes <= MAX_WAITING_BYTES) this.socket.resume();
      });
  }

  private async apply(bytes: Buffer, binary: boolean): Promise<void> {
    if (this.readOnly) throw new HoldfastError('forbidden', 'This connection only reads.');
    const { owner, id } = this.session;
    if (binary) {
      await this.session.type(bytes);
      return;
    }
    const message = parse(bytes);
    switch (message['type']) {
      case 'keys':
        await this.session.keys(strings(message['keys']));
        return;
      case 'paste':
        await this.session.paste(typeof message['text'] === 'string' ? message['text'] : '');
        return;
      case 'resize':
        await this.host.resize(owner, {
          id,
          size: { cols: Number(message['cols']), rows: Number(message['rows']) },
        });
        return;
      case 'signal':
        await this.host.signal(owner, {
          id,
          signal: String(message['signal']),
          by: 'attach',
          reach: 'foreground',
        });
        return;
      default:
        throw new HoldfastError('invalid_input', '"type": must be keys, paste, resize or signal');
    }
  }

  /** Resolves when the page has left this process, so that a slow client is waited for. */
  private sendPage(page: Page): Promise<void> {
    const { missed } = page;
    if (missed) this.sendJson({ type: 'missed', ...missed });
    for (const event of decodeRecords(page.records)) {
      if (event.kind === 'output') this.socket.send(frameOf(event.seq, event.data));
      else this.sendJson({ type: 'event', event: nativeEvent(event) });
    }
    if (page.end) this.sendJson({ type: 'end', state: page.state, outcome: page.outcome });
    // Messages and pings leave in order, so the ping's callback runs after everything above was sent.
    return new Promise((resolve) => this.socket.ping(undefined, undefined, () => resolve()));
  }

  private sendJson(message: Record<string, unknown>): void {
    this.socket.send(JSON.stringify(message));
  }
}

function frameOf(seq: number, data: Buffer): Buffer {
  const head = Buffer.alloc(SEQ_BYTES);
  head.writeUIntLE(seq, 0, 6);
  return Buffer.concat([head, data]);
}

function parse(bytes: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch {
    // Reported below.
  }
  throw new HoldfastError('invalid_input', 'A text message is a JSON object.');
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
