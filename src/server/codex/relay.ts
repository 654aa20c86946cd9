// codex through a gateway: its files, sandboxes and network are those of a host, so the bytes of the WebSocket are passed to
// the server of one. The gateway makes the handshake and looks at the first message: a session is resumed at its host.

import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { pipeline, type Duplex } from 'node:stream';
import type { Clock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { FleetDoor } from '../fleet-door.ts';
import type { SocketRelay, SocketRequest } from '../http/router.ts';
import { SESSION_HEADER, SESSION_PREFIX_LETTERS } from './sessions.ts';

/** Of RFC 6455. */
const WEBSOCKET_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const TEXT_FRAME = 0x81;
const CLOSE_FRAME = 0x88;
/** Close codes: our own fault; try again later. */
const [UNEXPECTED, AGAIN_LATER] = [1011, 1013];
/** A first message above this is no `initialize`. */
const MAX_FIRST_BYTES = 64 * 1024;
const FIRST_MS = 30_000;
/** Query parameters that select the host, as the labels of a start do. */
const SELECTING = /^(host\..+|workspace)$/;

export function codexRelay(fleet: FleetDoor, clock: Clock): SocketRelay {
  return async ({ caller, request, query }) => {
    const key = webSocketKey(request);
    const labels = Object.fromEntries([...query].filter(([name]) => SELECTING.test(name)));
    const placed = await fleet.place(caller.owner, labels);
    return (socket, head) => {
      new Relay({ fleet, clock, caller, key, placed }, socket).run(head).catch((error: unknown) => {
        // The client is gone, or its host is: the client connects again.
        closeWith(socket, error);
      });
    };
  };
}

interface RelayOptions extends Pick<SocketRequest, 'caller'> {
  readonly fleet: FleetDoor;
  readonly clock: Clock;
  readonly key: string;
  /** The host of a session that is not known yet. */
  readonly placed: string;
}

class Relay {
  private readonly options: RelayOptions;
  private readonly client: Duplex;

  constructor(options: RelayOptions, client: Duplex) {
    this.options = options;
    this.client = client;
  }

  async run(head: Buffer): Promise<void> {
    const { fleet, clock, caller, key, placed } = this.options;
    const { client } = this;
    client.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${acceptOf(key)}\r\n\r\n`,
    );
    const first = await collect(client, clock, { first: head, isWhole: isWholeFrame });
    const session = resumedSession(first);
    const known = session === undefined ? undefined : hostOf(fleet, session);
    const host = known ?? placed;
    const { owner, tokenId } = caller;
    const tunnel = fleet.tunnel(host, { owner, tokenId });
    try {
      tunnel.write(upgradeRequest(key, prefixOf(host)));
      const answer = await collect(tunnel, clock, {
        isWhole: (bytes) => bytes.includes('\r\n\r\n'),
      });
      const end = answer.indexOf('\r\n\r\n') + 4;
      const [status = ''] = answer.subarray(0, end).toString('latin1').split('\r\n');
      if (!status.startsWith('HTTP/1.1 101')) throw new Error(`The host answered ${status}.`);
      client.write(answer.subarray(end));
      tunnel.write(first);
    } catch (error) {
      tunnel.destroy();
      throw error;
    }
    // Whichever ends first ends the other.
    pipeline(client, tunnel, client, () => {
      client.destroy();
      tunnel.destroy();
    });
  }
}

function webSocketKey({ headers }: IncomingMessage): string {
  const { 'sec-websocket-key': key = '', 'sec-websocket-version': version } = headers;
  if (version === '13' && /^[+/0-9A-Za-z]{22}==$/.test(key)) return key;
  throw new HoldfastError('invalid_input', 'This is not a WebSocket handshake of RFC 6455.');
}

function acceptOf(key: string): string {
  return createHash('sha1').update(`${key}${WEBSOCKET_GUID}`).digest('base64');
}

function upgradeRequest(key: string, prefix: string): string {
  return `GET /codex HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n${SESSION_HEADER}: ${prefix}\r\n\r\n`;
}

/** The ids of sessions at a host begin with this. */
function prefixOf(host: string): string {
  return createHash('sha256').update(host).digest('hex').slice(0, SESSION_PREFIX_LETTERS);
}

function hostOf(fleet: FleetDoor, session: string): string | undefined {
  const prefix = session.replaceAll('-', '').slice(0, SESSION_PREFIX_LETTERS);
  return fleet.hosts().find(({ name }) => prefixOf(name) === prefix)?.name;
}

/** Where the payload of the first frame is, if it is a whole text. */
function frameOf(bytes: Buffer): { mask: number; start: number; end: number } | undefined {
  if (bytes.length < 2 || bytes[0] !== TEXT_FRAME) return undefined;
  const short = (bytes[1] ?? 0) & 0x7f;
  const extra = short === 126 ? 2 : short === 127 ? 8 : 0;
  if (bytes.length < 2 + extra + 4) return undefined;
  const length =
    extra === 0 ? short : extra === 2 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
  const start = 2 + extra + 4;
  return { mask: start - 4, start, end: start + length };
}

/** Or so much that it cannot be the first message of codex. */
function isWholeFrame(bytes: Buffer): boolean {
  if (bytes.length > MAX_FIRST_BYTES || (bytes.length > 0 && bytes[0] !== TEXT_FRAME)) return true;
  const frame = frameOf(bytes);
  return frame !== undefined && (bytes.length >= frame.end || frame.end > MAX_FIRST_BYTES);
}

function resumedSession(bytes: Buffer): string | undefined {
  const frame = frameOf(bytes);
  if (!frame || bytes.length < frame.end) return undefined;
  const payload = Buffer.from(bytes.subarray(frame.start, frame.end));
  for (const [index, byte] of payload.entries())
    payload[index] = byte ^ (bytes[frame.mask + (index & 3)] ?? 0);
  try {
    const { params } = JSON.parse(payload.toString()) as { params?: { resumeSessionId?: unknown } };
    return typeof params?.resumeSessionId === 'string' ? params.resumeSessionId : undefined;
  } catch {
    return undefined;
  }
}

/** The first bytes of a stream. What has been read is not in the stream any more. */
function collect(
  stream: Duplex,
  clock: Clock,
  {
    first = Buffer.alloc(0),
    isWhole,
  }: { readonly first?: Buffer; readonly isWhole: (bytes: Buffer) => boolean },
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let bytes = first;
    const over = (error: Error | undefined): void => {
      cancel();
      stream.off('readable', read);
      stream.off('error', over);
      stream.off('close', closed);
      if (error) reject(error);
      else resolve(bytes);
    };
    const closed = (): void => over(new Error('The connection closed.'));
    const cancel = clock.after(FIRST_MS, () => over(new Error('Nothing came in time.')));
    const read = (): void => {
      for (
        let chunk = stream.read() as Buffer | null;
        chunk;
        chunk = stream.read() as Buffer | null
      )
        bytes = Buffer.concat([bytes, chunk]);
      if (isWhole(bytes)) over(undefined);
    };
    stream.on('readable', read);
    stream.once('error', over);
    stream.once('close', closed);
    if (isWhole(bytes)) over(undefined);
  });
}

/** The client has a WebSocket already: the reason is in its close frame. */
function closeWith(socket: Duplex, error: unknown): void {
  const isAway = error instanceof HoldfastError && error.code === 'host_unreachable';
  const text = error instanceof Error ? error.message : String(error);
  const reason = Buffer.from(text).subarray(0, 120);
  const frame = Buffer.alloc(4);
  frame[0] = CLOSE_FRAME;
  frame[1] = reason.length + 2;
  frame.writeUInt16BE(isAway ? AGAIN_LATER : UNEXPECTED, 2);
  socket.end(Buffer.concat([frame, reason]), () => socket.destroy());
}
