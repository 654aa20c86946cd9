// A WebSocket on a terminal: its events as they come, what is typed as it is typed. Whoever was cut off goes on behind the
// last event it got.
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
/** Small enough that thousands may watch, large enough that a flood needs few questions. */
const PAGE_BYTES = 128 * 1024;
const WAIT_MS = 25_000;
const SEQ_BYTES = 8;
/** When more than this has not been taken by the program, nothing more is read from the client. */
const MOST_WAITING_BYTES = 256 * 1024;

export function attachRow(options: AttachOptions): SocketRow {
  return {
    maxMessageBytes: MAX_MESSAGE_BYTES,
    open: (socket, asked) => void attach(socket, asked, options),
  };
}

async function attach(
  socket: WebSocket,
  asked: SocketRequest,
  { host, terminals }: AttachOptions,
): Promise<void> {
  const gone = new AbortController();
  socket.on('close', () => gone.abort());
  socket.on('error', () => gone.abort());
  const early: [RawData, boolean][] = [];
  const keep = (data: RawData, binary: boolean): unknown => {
    // What has been read already still comes; the rest waits in the client until it is taken.
    socket.pause();
    return early.push([data, binary]);
  };
  socket.on('message', keep);
  try {
    const { sees } = nativeOwner(asked);
    const session = await terminals.open(sees, asked.params['id'] ?? '');
    const readOnly = asked.query.get('readOnly') === 'true';
    const seat = new Attached(socket, session, { host, terminals, readOnly });
    const from = await seat.hello(afterOf(asked.query.get('after')));
    socket.off('message', keep);
    socket.on('message', (data, binary) => seat.said(data, binary));
    if (socket.isPaused) socket.resume();
    for (const [data, binary] of early) seat.said(data, binary);
    await seat.follow(from, gone.signal);
    socket.close(1000);
  } catch (error) {
    if (gone.signal.aborted) return;
    socket.send(JSON.stringify({ type: 'problem', error: toErrorShape(error) }));
    socket.close(1011);
  }
}

function afterOf(text: string | null): number | undefined {
  if (text === null) return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new HoldfastError('invalid_input', '"after": must be the number of an event', {
    field: 'after',
  });
}

class Attached {
  private readonly socket: WebSocket;
  private readonly session: TerminalSession;
  private readonly host: HostApi;
  private readonly readOnly: boolean;
  private readonly terminals: Terminals;
  /** In the order in which it was said. */
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

  /** Whoever comes anew is shown the screen; whoever comes back goes on where it was. */
  async hello(after: number | undefined): Promise<number> {
    const { session } = this;
    const { size } = await session.info();
    if (after !== undefined) {
      this.tell({ type: 'hello', id: session.id, size, seq: after });
      return after;
    }
    const { seq, screen } = await this.terminals.look(
      session,
      { behind: true },
      async (view, pictures) => ({ seq: view.seq, screen: await pictures.repaint(view) }),
    );
    this.tell({ type: 'hello', id: session.id, size, seq, screen });
    return seq;
  }

  async follow(from: number, signal: AbortSignal): Promise<void> {
    const { owner, id } = this.session;
    const size = { maxBytes: PAGE_BYTES, waitMs: WAIT_MS };
    const read = (position: Position): Promise<Page> =>
      this.host.read(owner, { id, ...position, ...size }, signal);
    for await (const page of followEvents(read, { after: from })) await this.send(page);
  }

  said(data: RawData, binary: boolean): void {
    const bytes = Buffer.isBuffer(data)
      ? data
      : Buffer.concat(Array.isArray(data) ? data : [Buffer.from(data)]);
    this.waitingBytes += bytes.length;
    if (this.waitingBytes > MOST_WAITING_BYTES) this.socket.pause();
    this.turn = this.turn
      .then(() => this.obey(bytes, binary))
      .catch((error: unknown) => {
        this.tell({ type: 'problem', error: toErrorShape(error) });
      })
      .then(() => {
        this.waitingBytes -= bytes.length;
        if (this.socket.isPaused && this.waitingBytes <= MOST_WAITING_BYTES) this.socket.resume();
      });
  }

  private async obey(bytes: Buffer, binary: boolean): Promise<void> {
    if (this.readOnly) throw new HoldfastError('forbidden', 'This connection only reads.');
    const { owner, id } = this.session;
    if (binary) {
      await this.session.type(bytes);
      return;
    }
    const said = parse(bytes);
    switch (said['type']) {
      case 'keys':
        await this.session.keys(strings(said['keys']));
        return;
      case 'paste':
        await this.session.paste(typeof said['text'] === 'string' ? said['text'] : '');
        return;
      case 'resize':
        await this.host.resize(owner, {
          id,
          size: { cols: Number(said['cols']), rows: Number(said['rows']) },
        });
        return;
      case 'signal':
        await this.host.signal(owner, {
          id,
          signal: String(said['signal']),
          by: 'attach',
          reach: 'foreground',
        });
        return;
      default:
        throw new HoldfastError('invalid_input', '"type": must be keys, paste, resize or signal');
    }
  }

  /** Resolves when the last of it has left this program: a slow reader is waited for. */
  private send(page: Page): Promise<void> {
    const { missed } = page;
    if (missed) this.tell({ type: 'missed', ...missed });
    for (const event of decodeRecords(page.records)) {
      if (event.kind === 'output') this.socket.send(framed(event.seq, event.data));
      else this.tell({ type: 'event', event: nativeEvent(event) });
    }
    if (page.end) this.tell({ type: 'end', state: page.state, outcome: page.outcome });
    // Behind everything above: pings are answered in order.
    return new Promise((resolve) => this.socket.ping(undefined, undefined, () => resolve()));
  }

  private tell(message: Record<string, unknown>): void {
    this.socket.send(JSON.stringify(message));
  }
}

function framed(seq: number, data: Buffer): Buffer {
  const head = Buffer.alloc(SEQ_BYTES);
  head.writeUIntLE(seq, 0, 6);
  return Buffer.concat([head, data]);
}

function parse(bytes: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch {
    // Told below.
  }
  throw new HoldfastError('invalid_input', 'A text message is a JSON object.');
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
