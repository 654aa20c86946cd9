// The page's one WebSocket. Everything that is followed says where it continues each time the connection is made, so a server
// that was killed and came back, or a laptop that slept, loses nothing and repeats nothing.

import { effect, signal } from '@preact/signals';
import { Problem } from './http.ts';
import { signedOut, signIn, token } from './token.ts';

export interface Message {
  readonly type: string;
  readonly [field: string]: unknown;
}

export interface Subscription {
  /** What to say when the connection is made: where to continue. */
  readonly begin: () => Record<string, unknown>;
  readonly onMessage?: (message: Message) => void;
  /** Output, with its position. The page has taken it when this is over. */
  readonly onBytes?: (position: number, bytes: Uint8Array) => void | Promise<void>;
}

export type Connection =
  | { readonly state: 'live' }
  | { readonly state: 'lost'; readonly sinceMs: number };

export const connection = signal<Connection>({ state: 'lost', sinceMs: Date.now() });
/** The server's clock less this one's. */
export const clockAheadMs = signal(0);

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 2000;
const SIGN_IN = 4401;
const HEAD_BYTES = 10;

const subscriptions = new Map<number, Subscription>();
const asked = new Map<
  number,
  { resolve: (answer: Message) => void; reject: (error: Problem) => void }
>();
let socket: WebSocket | undefined;
let pauseMs = FIRST_PAUSE_MS;
let lastChannel = 0;
let lastAsk = 0;

effect(() => {
  if (signIn.value === 'in') connect();
});

/** Follows something until the answer is called. */
export function subscribe(subscription: Subscription): () => void {
  lastChannel += 1;
  const channel = lastChannel;
  subscriptions.set(channel, subscription);
  if (connection.peek().state === 'live') say({ ...subscription.begin(), channel });
  return () => {
    subscriptions.delete(channel);
    say({ type: 'drop', channel });
  };
}

/** Asks for something to be done to a terminal. */
export function tell(message: Record<string, unknown>): Promise<Message> {
  return new Promise((resolve, reject) => {
    if (connection.peek().state !== 'live') {
      reject(new Problem('unreachable', 'The server cannot be reached.'));
      return;
    }
    lastAsk += 1;
    asked.set(lastAsk, { resolve, reject });
    say({ ...message, ask: lastAsk });
  });
}

function say(message: Record<string, unknown>): void {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

function connect(): void {
  if (socket) return;
  const opened = new WebSocket(`${location.origin.replace(/^http/, 'ws')}/v1/watch`);
  socket = opened;
  opened.binaryType = 'arraybuffer';
  opened.addEventListener('open', () => {
    const held = token();
    say({ type: 'hello', ...(held !== undefined && { token: held }) });
  });
  opened.addEventListener('message', ({ data }: MessageEvent<string | ArrayBuffer>) => {
    if (typeof data === 'string') receiveText(data);
    else receiveBytes(data);
  });
  opened.addEventListener('close', ({ code }) => {
    socket = undefined;
    lose();
    if (code === SIGN_IN) signedOut();
    if (signIn.peek() !== 'in') return;
    setTimeout(connect, pauseMs);
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
  });
}

function lose(): void {
  if (connection.peek().state === 'live') connection.value = { state: 'lost', sinceMs: Date.now() };
  for (const { reject } of asked.values())
    reject(new Problem('unreachable', 'The connection was lost before the answer came.'));
  asked.clear();
}

/** Pictures use up credit, as output does. */
function receiveText(text: string): void {
  const message = JSON.parse(text) as Message;
  receive(message);
  if (message.type === 'thumbnail')
    say({ type: 'credit', channel: message['channel'], bytes: text.length });
}

function receive(message: Message): void {
  if (message.type === 'welcome') {
    pauseMs = FIRST_PAUSE_MS;
    clockAheadMs.value = Number(message['nowMs']) - Date.now();
    connection.value = { state: 'live' };
    for (const [channel, { begin }] of subscriptions) say({ ...begin(), channel });
    return;
  }
  const number = Number(message['ask'] ?? 0);
  const waiting = asked.get(number);
  asked.delete(number);
  if (message.type === 'problem' && waiting) waiting.reject(problemOf(message));
  else if (waiting) waiting.resolve(message);
  else subscriptions.get(Number(message['channel']))?.onMessage?.(message);
}

export function problemOf(message: Message): Problem {
  const {
    code,
    message: text,
    remedy,
  } = message['error'] as {
    code: string;
    message: string;
    remedy?: string;
  };
  return new Problem(code, text, remedy);
}

function receiveBytes(data: ArrayBuffer): void {
  const view = new DataView(data);
  const channel = (view.getUint8(1) << 16) | view.getUint16(2);
  const position = view.getUint16(4) * 2 ** 32 + view.getUint32(6);
  const bytes = new Uint8Array(data, HEAD_BYTES);
  const taken = subscriptions.get(channel)?.onBytes?.(position, bytes);
  void Promise.resolve(taken).then(() => say({ type: 'credit', channel, bytes: bytes.length }));
}
