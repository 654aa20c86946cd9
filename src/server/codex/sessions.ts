// The sessions that this server serves. A session is an owner with a lease in the keeper; this file knows only which
// connection holds it, and renews its lease.

import { randomUUID } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { HostApi, Owner } from '../../protocol/host-api.ts';
import { KEEP_LABEL } from './process/start.ts';
import { RpcError, rpcCodes } from './rpc.ts';

/** The connection that holds a session. */
export interface Holder {
  /** Sessions of one owner are unknown to another. */
  readonly owner: Owner | undefined;
  alive(): Promise<boolean>;
  /** Another connection has taken the session. */
  lose(): void;
}

export interface SessionLease {
  readonly id: string;
  readonly owner: Owner;
  /** The connection has ended: from now on the lease runs out, immediately if `now`. */
  detach(now?: boolean): Promise<void>;
}

export interface SessionsOptions {
  readonly host: HostApi;
  readonly clock: Clock;
  /** How long a session outlives its connection. */
  readonly detachMs: number;
  readonly report: (message: string) => void;
}

/** Of a gateway to the server of a host: what the id of a new session begins with. */
export const SESSION_HEADER = 'holdfast-session-prefix';
/** Of the 32 hexadecimal digits; 74 random bits remain. */
export const SESSION_PREFIX_LETTERS = 12;
const SESSION_PREFIX = /^[0-9a-f]{12}$/;

/** While a connection holds it: a slow server must not lose its sessions. */
const MIN_LEASE_MS = 30_000;
const RENEWALS_PER_LEASE = 3;
const MAX_RENEW_MS = 20_000;

export class Sessions {
  private readonly options: SessionsOptions;
  private readonly holders = new Map<Owner, Holder>();

  constructor(options: SessionsOptions) {
    this.options = options;
  }

  /** `prefix`: what the id begins with, so that a gateway finds its host again. */
  async open(holder: Holder, prefix?: string): Promise<SessionLease> {
    return this.attach(newSessionId(prefix), holder, 'open');
  }

  /** Refused while the holder is alive; a holder that does not answer loses the session. */
  async resume(id: string, holder: Holder): Promise<SessionLease> {
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

  private async attach(id: string, holder: Holder, mode: 'open' | 'take'): Promise<SessionLease> {
    const { host, clock, detachMs, report } = this.options;
    const owner = ownerOf(id, holder);
    const ttlMs = Math.max(detachMs, MIN_LEASE_MS);
    const key = randomUUID();
    const lease = { holder: key, spareLabel: KEEP_LABEL };
    const before = this.holders.get(owner);
    await host.lease(owner, { ...lease, mode, ttlMs });
    before?.lose();
    this.holders.set(owner, holder);
    let cancel: () => void;
    const endLease = (): boolean => {
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
      if (endLease()) holder.lose();
    };
    const scheduleRenewal = (): void => {
      const ms = Math.min(MAX_RENEW_MS, ttlMs / RENEWALS_PER_LEASE);
      cancel = clock.after(ms, () => {
        scheduleRenewal();
        void renew();
      });
    };
    scheduleRenewal();
    const detach = async (now = false): Promise<void> => {
      if (!endLease()) return;
      try {
        await host.lease(owner, { ...lease, mode: 'renew', ttlMs: now ? 0 : detachMs });
      } catch (error) {
        // The lease then runs out by itself. A server that is closing is not reported.
        if (!(error instanceof HoldfastError) || error.code !== 'host_closed')
          report(`a session was not detached: ${String(error)}`);
      }
    };
    return { id, owner, detach };
  }
}

/** A prefix that is none is ignored. */
function newSessionId(prefix = ''): string {
  const id = randomUUID();
  if (!SESSION_PREFIX.test(prefix)) return id;
  const rest = id.replaceAll('-', '').slice(SESSION_PREFIX_LETTERS);
  return (prefix + rest).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

function ownerOf(id: string, { owner }: Holder): Owner {
  return owner === undefined ? `codex:${id}` : `${owner}/codex:${id}`;
}
