// The sessions that this server serves. A session itself is an owner with a lease in the keeper; here is only which
// connection holds it now, and that its lease is renewed.

import { randomUUID } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { HostApi, Owner } from '../../protocol/host-api.ts';
import { KEEP_LABEL } from './process/start.ts';
import { RpcError, rpcCodes } from './rpc.ts';

/** The connection that holds a session. */
export interface Holder {
  /** Who asks: sessions of one are unknown to another. */
  readonly owner: Owner | undefined;
  alive(): Promise<boolean>;
  /** Somebody else has the session now. */
  lose(): void;
}

export interface Attached {
  readonly id: string;
  readonly owner: Owner;
  /** The connection has ended: the time that the session has left begins. `now`: it has none. */
  detach(now?: boolean): Promise<void>;
}

export interface SessionsOptions {
  readonly host: HostApi;
  readonly clock: Clock;
  /** How long a session outlives its connection. */
  readonly detachMs: number;
  readonly report: (message: string) => void;
}

/** While attached: a server that is only slow must not lose its sessions. */
const LEAST_LEASE_MS = 30_000;
const RENEWALS_PER_LEASE = 3;
const MOST_RENEW_MS = 20_000;

export class Sessions {
  private readonly options: SessionsOptions;
  private readonly holders = new Map<Owner, Holder>();

  constructor(options: SessionsOptions) {
    this.options = options;
  }

  async open(holder: Holder): Promise<Attached> {
    return this.attach(randomUUID(), holder, 'open');
  }

  /** Refused while its holder is alive; one that does not answer any more is put out. */
  async resume(id: string, holder: Holder): Promise<Attached> {
    const current = this.holders.get(ownerOf(id, holder));
    if (current && (await current.alive()) && this.holders.get(ownerOf(id, holder)) === current)
      throw new RpcError(
        rpcCodes.attachedElsewhere,
        `session ${id} is already attached to another connection`,
      );
    try {
      return await this.attach(id, holder, 'take');
    } catch (error) {
      if (error instanceof HoldfastError && error.code === 'not_found')
        throw new RpcError(rpcCodes.refused, `unknown session id ${id}`);
      throw error;
    }
  }

  private async attach(id: string, holder: Holder, mode: 'open' | 'take'): Promise<Attached> {
    const { host, clock, detachMs, report } = this.options;
    const owner = ownerOf(id, holder);
    const ttlMs = Math.max(detachMs, LEAST_LEASE_MS);
    const key = randomUUID();
    const lease = { holder: key, spareLabel: KEEP_LABEL };
    const before = this.holders.get(owner);
    await host.lease(owner, { ...lease, mode, ttlMs });
    before?.lose();
    this.holders.set(owner, holder);
    let cancel: () => void;
    const over = (): boolean => {
      cancel();
      if (this.holders.get(owner) !== holder) return false;
      this.holders.delete(owner);
      return true;
    };
    const renew = async (): Promise<void> => {
      try {
        const { held } = await host.lease(owner, { ...lease, mode: 'renew', ttlMs });
        if (held) return;
      } catch (error) {
        if (!(error instanceof HoldfastError) || error.code !== 'not_found') {
          report(`a session's lease was not renewed: ${String(error)}`);
          return;
        }
      }
      if (over()) holder.lose();
    };
    const plan = (): void => {
      const ms = Math.min(MOST_RENEW_MS, ttlMs / RENEWALS_PER_LEASE);
      cancel = clock.after(ms, () => {
        plan();
        void renew();
      });
    };
    plan();
    const detach = async (now = false): Promise<void> => {
      if (!over()) return;
      try {
        await host.lease(owner, { ...lease, mode: 'renew', ttlMs: now ? 0 : detachMs });
      } catch (error) {
        // The lease runs out by itself then; a server that goes down is no news.
        if (!(error instanceof HoldfastError) || error.code !== 'host_closed')
          report(`a session was not detached: ${String(error)}`);
      }
    };
    return { id, owner, detach };
  }
}

function ownerOf(id: string, { owner }: Holder): Owner {
  return owner === undefined ? `codex:${id}` : `${owner}/codex:${id}`;
}
