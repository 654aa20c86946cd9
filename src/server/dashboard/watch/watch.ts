// One WebSocket for everything that a dashboard page follows: the list of processes, logs, screens and completions. The first
// message carries the token. Each subscription continues behind what its client has, so a cut connection loses nothing.
//
//   to the client    text: JSON with "type": welcome, rows, painted, thumbnail, event, end, missed, completions, problem, bye
//                    binary: kind (1 log, 2 screen), channel (3 bytes), position (6 bytes), all big-endian, then output bytes
//   to the server    text: JSON with "type": hello, list, completions, log, screen, thumbnail, credit,
//                    drop, hold, release, type, resize

import type { RawData, WebSocket } from 'ws';
import type { Clock } from '../../../base/clock.ts';
import { HoldfastError, toErrorShape } from '../../../protocol/errors.ts';
import type { HostApi } from '../../../protocol/host-api.ts';
import type { Terminals } from '../../../terminals/terminals.ts';
import type { Bearer } from '../../http/tokens.ts';
import type { SocketRequest, SocketRow } from '../../http/router.ts';
import { ChannelCredit, type Channel } from './channel.ts';
import { paintedScreen } from './follow-screen.ts';
import { Keyboards } from './keyboards.ts';
import { narrowed, refuseUnsharedMessage, subscription } from './subscription.ts';
import { parseWatchMessage, type WatchMessage } from './watch-messages.ts';

export interface WatchOptions {
  readonly host: HostApi;
  readonly terminals: Terminals;
  readonly clock: Clock;
  /** The caller of a token; without a token the caller of a server that asks for none. */
  readonly bearer: (token: string | undefined) => Bearer | undefined;
}

const MAX_MESSAGE_BYTES = 256 * 1024;
/** A client that does not say who it is for so long is cut off. */
const HELLO_MS = 5000;
/** How often a session that may have been revoked is looked at. */
const VALID_MS = 2000;
const MOST_CHANNELS = 256;
/** The code of a close that says: sign in again. */
const SIGN_IN = 4401;

export function watchRow(options: WatchOptions): SocketRow {
  return {
    maxMessageBytes: MAX_MESSAGE_BYTES,
    load: async () => (socket, request) => new WatchConnection(socket, request, options).open(),
  };
}

class WatchConnection {
  private readonly socket: WebSocket;
  private readonly request: SocketRequest;
  private readonly options: WatchOptions;
  private readonly gone = new AbortController();
  private readonly channels = new Map<number, Channel>();
  private keyboards: Keyboards | undefined;
  private token: string | undefined;
  private bearer: Bearer | undefined;
  private cancelTimer: () => void = () => undefined;
  /** Messages are obeyed in the order in which they came. */
  private turn: Promise<void> = Promise.resolve();

  constructor(socket: WebSocket, request: SocketRequest, options: WatchOptions) {
    this.socket = socket;
    this.request = request;
    this.options = options;
  }

  open(): void {
    const { socket } = this;
    const leave = (): void => this.leave();
    socket.on('close', leave);
    socket.on('error', leave);
    socket.on('message', (data, binary) => this.receive(data, binary));
    this.cancelTimer = this.options.clock.after(HELLO_MS, () => this.bye('no hello in time'));
  }

  private receive(data: RawData, binary: boolean): void {
    this.turn = this.turn
      .then(() => {
        if (binary) throw new HoldfastError('invalid_input', 'Messages to the server are text.');
        return this.obey(parseWatchMessage(textOf(data)));
      })
      .catch((error: unknown) => this.tell({ type: 'problem', error: toErrorShape(error) }));
  }

  private async obey(message: WatchMessage): Promise<void> {
    if (message.type === 'hello') {
      this.welcome(message.token);
      return;
    }
    const { owner, only } = this.bearer ?? {};
    if (owner === undefined || !this.keyboards)
      throw new HoldfastError('unauthorized', 'The first message must be "hello" with a token.');
    refuseUnsharedMessage(message, only);
    switch (message.type) {
      case 'credit':
        this.channels.get(message.channel)?.credit.add(message.bytes);
        return;
      case 'drop':
        this.channels.get(message.channel)?.gone.abort();
        this.channels.delete(message.channel);
        return;
      case 'paint': {
        const from = { owner: narrowed(owner, message.owner), terminals: this.options.terminals };
        void this.answer(message.ask, paintedScreen(from, message.id, message.at));
        return;
      }
      case 'hold':
      case 'release':
      case 'type':
      case 'resize': {
        const target = { owner: narrowed(owner, message.owner), id: message.id };
        await this.answer(message.ask, this.keyboards.obey(message, target));
        return;
      }
      case 'list':
      case 'completions':
      case 'attention':
      case 'log':
      case 'screen':
      case 'thumbnail':
        this.begin(message.channel, subscription(message, { ...this.options, owner, only }));
    }
  }

  private async answer(ask: number, done: Promise<object>): Promise<void> {
    try {
      void this.tell({ type: 'done', ask, ...(await done) });
    } catch (error) {
      void this.tell({ type: 'problem', ask, error: toErrorShape(error) });
    }
  }

  private welcome(token: string | undefined): void {
    const { bearer, clock, host } = this.options;
    this.token = token;
    this.bearer = bearer(token);
    if (!this.bearer) {
      this.bye('The session is over.');
      return;
    }
    this.request.markProven?.();
    this.keyboards = new Keyboards(host, this.bearer.tokenId);
    this.cancelTimer();
    this.cancelTimer = clock.after(VALID_MS, () => this.stillValid());
    const { owner, only } = this.bearer;
    void this.tell({ type: 'welcome', owner, only, nowMs: clock.wallMs() });
  }

  private stillValid(): void {
    if (!this.options.bearer(this.token)) this.bye('The session is over.');
    else this.cancelTimer = this.options.clock.after(VALID_MS, () => this.stillValid());
  }

  private begin(number: number, follow: (channel: Channel) => Promise<void>): void {
    this.channels.get(number)?.gone.abort();
    if (this.channels.size >= MOST_CHANNELS)
      throw new HoldfastError('limit_reached', `A page follows at most ${MOST_CHANNELS} things.`);
    const gone = new AbortController();
    const channel: Channel = {
      number,
      gone,
      credit: new ChannelCredit(),
      tell: (message) => this.tell({ ...message, channel: number }),
      send: (bytes) => this.send(bytes),
    };
    this.channels.set(number, channel);
    const over = (): void => {
      if (this.channels.get(number) === channel) this.channels.delete(number);
    };
    follow(channel).then(over, (error: unknown) => {
      over();
      if (!gone.signal.aborted)
        void this.tell({ type: 'problem', channel: number, error: toErrorShape(error) });
    });
  }

  /** Resolves when the message has left this program: a slow client is waited for. */
  private tell(message: Record<string, unknown>): Promise<void> {
    return this.send(JSON.stringify(message));
  }

  private send(data: string | Buffer): Promise<void> {
    return new Promise((resolve) => {
      if (this.socket.readyState === this.socket.OPEN) this.socket.send(data, () => resolve());
      else resolve();
    });
  }

  private bye(reason: string): void {
    void this.tell({ type: 'bye', reason });
    this.socket.close(SIGN_IN, reason);
    this.leave();
  }

  private leave(): void {
    this.cancelTimer();
    this.gone.abort();
    for (const { gone } of this.channels.values()) gone.abort();
    this.channels.clear();
    void this.keyboards?.releaseAll();
  }
}

function textOf(data: RawData): string {
  if (Buffer.isBuffer(data)) return data.toString('utf8');
  return Buffer.concat(Array.isArray(data) ? data : [Buffer.from(data)]).toString('utf8');
}
