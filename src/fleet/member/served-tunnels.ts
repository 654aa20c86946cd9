// The host's side of tunnels: each is a connection to the host's own server, whose caller is the one the gateway names.

import type { Duplex } from 'node:stream';
import type { Clock } from '../../base/clock.ts';
import type { OwnerPolicy } from '../../protocol/confinement/confinement.ts';
import { EVERYONE, type Owner } from '../../protocol/host-api.ts';
import { encodeFrame } from '../../keeper/frames.ts';
import type { Fabric, Heard } from '../wire/fabric.ts';
import { readAnswer } from '../wire/subjects.ts';
import {
  readTunnelMessage,
  TunnelStream,
  type TunnelMessage,
  type TunnelOpening,
} from '../wire/tunnel-stream.ts';
import { windowBytes } from '../wire/tunnel-window.ts';

/** Serves HTTP on a stream whose other end is this caller. */
export type ServeStream = (
  stream: Duplex,
  caller: {
    readonly tokenId: string;
    readonly owner: Owner;
    readonly ceiling?: OwnerPolicy | undefined;
  },
) => void;

export interface ServedTunnelsOptions {
  readonly fabric: Fabric;
  readonly clock: Clock;
  readonly name: string;
  readonly boot: string;
  readonly admits: (owner: Owner) => boolean;
  readonly serve: ServeStream | undefined;
}

const MOST_TUNNELS = 1000;
/**
 * A gateway that acts for everyone has its own owner in tunnels: what comes over NATS is never the administrator of a
 * machine.
 */
const FLEET_OWNER = 'fleet';

export class ServedTunnels {
  private readonly options: ServedTunnelsOptions;
  /** By the reply subject. */
  private readonly streams = new Map<string, TunnelStream>();

  constructor(options: ServedTunnelsOptions) {
    this.options = options;
  }

  get count(): number {
    return this.streams.size;
  }

  heard({ reply, bytes }: Heard): void {
    const from = readAnswer(reply);
    if (reply === undefined || from?.host !== this.options.name || from.lane !== 'tunnel') return;
    const message = readTunnelMessage(bytes);
    if (!message) return;
    const stream = this.streams.get(reply);
    if (stream) stream.receive(message);
    else if ('open' in message) this.open(reply, message.open);
    else if (!('close' in message))
      this.send(reply, { close: 'The host does not know this tunnel any more.' });
  }

  close(): void {
    for (const stream of this.streams.values()) stream.destroy();
  }

  private open(reply: string, opening: TunnelOpening): void {
    const { serve, clock } = this.options;
    const refusal = this.refusal(opening);
    if (refusal !== undefined || !serve) {
      this.send(reply, { close: refusal ?? 'This host serves no tunnels.' });
      return;
    }
    const stream = new TunnelStream({
      clock,
      send: (message) => this.send(reply, message),
      windowBytes: () => windowBytes(this.streams.size),
    });
    this.streams.set(reply, stream);
    stream.once('close', () => this.streams.delete(reply));
    // 'close' follows.
    stream.on('error', () => undefined);
    const { tokenId, owner, ceiling } = opening;
    serve(stream, { tokenId: `fleet:${tokenId}`, owner: ownerHere(owner), ceiling });
  }

  private refusal({ boot, untilMs, owner }: TunnelOpening): string | undefined {
    const { clock, name, admits } = this.options;
    if (boot !== this.options.boot || !(clock.nowUs() / 1000 <= untilMs))
      return 'The tunnel was asked for too late.';
    if (!admits(ownerHere(owner)))
      return `The host "${name}" does not work for the owner ${JSON.stringify(ownerHere(owner))}.`;
    if (this.streams.size >= MOST_TUNNELS)
      return `The host "${name}" has ${MOST_TUNNELS} tunnels already.`;
    return undefined;
  }

  private send(reply: string, message: TunnelMessage): boolean {
    return this.options.fabric.publish(reply, Buffer.concat(encodeFrame(message)));
  }
}

function ownerHere(owner: Owner): Owner {
  return owner === EVERYONE ? FLEET_OWNER : owner;
}
