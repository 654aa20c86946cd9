// Byte streams from a gateway to the servers of hosts, for what must happen at the host's machine.

import type { Duplex } from 'node:stream';
import type { Clock } from '../../base/clock.ts';
import type { OwnerPolicy } from '../../protocol/confinement/confinement.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Owner } from '../../protocol/host-api.ts';
import { encodeFrame } from '../../keeper/frames.ts';
import type { Fabric, Heard } from '../wire/fabric.ts';
import { TTL_MS } from '../wire/messages.ts';
import { readAnswer, subjects } from '../wire/subjects.ts';
import { readTunnelMessage, TunnelStream, type TunnelMessage } from '../wire/tunnel-stream.ts';
import { windowBytes } from '../wire/tunnel-window.ts';
import type { HostTable } from './host-table.ts';

export interface TunnelCaller {
  readonly owner: Owner;
  readonly tokenId: string;
}

const MOST_TUNNELS = 1000;

export class Tunnels {
  private readonly options: {
    readonly fabric: Fabric;
    readonly table: HostTable;
    readonly clock: Clock;
    readonly gateway: string;
    readonly ceilingOf?: ((owner: Owner) => OwnerPolicy | undefined) | undefined;
  };
  private readonly streams = new Map<number, { stream: TunnelStream; host: string }>();
  private lastNumber = 0;

  constructor(options: Tunnels['options']) {
    this.options = options;
    const { fabric, gateway } = options;
    fabric.subscribe(subjects.answersTo(gateway, 'tunnel'), (heard) => this.heard(heard));
  }

  get count(): number {
    return this.streams.size;
  }

  /** A stream to the server of this host, which takes its bytes for HTTP of this caller. */
  open(host: string, { owner, tokenId }: TunnelCaller): Duplex {
    const { fabric, table, clock, gateway, ceilingOf } = this.options;
    const known = table.get(host);
    if (!fabric.connected) throw new HoldfastError('fabric_degraded', fabric.problem);
    if (known?.state !== 'here') {
      const problem = `The host "${host}" is ${known?.state ?? 'not known to this gateway'}.`;
      throw new HoldfastError('host_unreachable', problem, { host });
    }
    if (this.streams.size >= MOST_TUNNELS) {
      const problem = `This gateway has ${MOST_TUNNELS} tunnels to hosts already.`;
      throw new HoldfastError('limit_reached', problem, { retryAfterMs: 1000 });
    }
    const number = ++this.lastNumber;
    const reply = subjects.answer(gateway, host, 'tunnel', number);
    const send = (message: TunnelMessage): boolean =>
      fabric.publish(subjects.tunnels(host), Buffer.concat(encodeFrame(message)), { reply });
    const { boot } = known.beat;
    const untilMs = table.hostNowMs(host) + TTL_MS;
    send({ open: { owner, tokenId, boot, untilMs, ceiling: ceilingOf?.(owner) } });
    const window = (): number => windowBytes(this.streams.size);
    const stream = new TunnelStream({ clock, send, windowBytes: window });
    this.streams.set(number, { stream, host });
    stream.once('close', () => this.streams.delete(number));
    return stream;
  }

  close(): void {
    for (const { stream } of this.streams.values()) stream.destroy();
  }

  private heard({ subject, bytes, nobodyListens }: Heard): void {
    const from = readAnswer(subject);
    const open = from && this.streams.get(from.number);
    if (!open || open.host !== from.host) return;
    const { stream } = open;
    if (nobodyListens) {
      stream.destroy(new Error(`Nobody listens for the host "${from.host}".`));
      return;
    }
    // Anything else is passed over: another host may have let JetStream answer here. Bytes that are missing end the stream.
    const message = readTunnelMessage(bytes);
    if (message) stream.receive(message);
  }
}
