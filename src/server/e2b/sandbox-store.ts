// The sandboxes of a home: one small private file each, so that any later server knows them. The processes of a sandbox
// belong to an owner of its own and end with a lease, which the keeper holds.

import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { errnoOf } from '../../base/disk.ts';
import { randomId } from '../../base/ids.ts';
import { LEASE_ENDED } from '../../host/leases/leases.ts';
import { EVERYONE, type HostApi, type Owner } from '../../protocol/host-api.ts';
import { listAll } from '../../protocol/list-all.ts';
import { readPrivate, replacePrivate } from '../http/token-file.ts';

export interface Sandbox {
  readonly id: string;
  /** The owner whose token made it; only that owner and the admin see it. */
  readonly creator: Owner;
  readonly templateId: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Variables of every process in it. */
  readonly env: Readonly<Record<string, string>>;
  readonly startedAtMs: number;
  readonly endAtMs: number;
  /** After its time it can be connected to again, for a month. Its files are still there, its processes were ended. */
  readonly keeps?: boolean;
}

export const LEASE = 'sandbox';
export { LEASE_ENDED };
const OWNER = 'e2b:';
const ID = /^i[0-9a-z]{19}$/;
const OF_SANDBOX = /(?:^|\/)e2b:(i[0-9a-z]{19})$/;
const KEPT_MS = 30 * 24 * 60 * 60 * 1000;

/** Made by a scoped token it belongs to that token's owner, and the ceilings of the token hold for it. */
export function sandboxOwner({ id, creator }: Pick<Sandbox, 'id' | 'creator'>): Owner {
  return creator === EVERYONE ? OWNER + id : `${creator}/${OWNER}${id}`;
}

/** The sandbox that an owner is; undefined for other owners. */
export function sandboxIdOf(owner: Owner): string | undefined {
  return OF_SANDBOX.exec(owner)?.[1];
}

export class SandboxStore {
  private readonly folder: string;
  private readonly host: HostApi;
  private readonly clock: Clock;

  constructor(home: string, host: HostApi, clock: Clock) {
    this.folder = join(home, 'e2b');
    this.host = host;
    this.clock = clock;
  }

  /** Undefined if it never was, was killed, or its time is over. */
  find(id: string): Sandbox | undefined {
    const sandbox = this.findKept(id);
    return sandbox && !this.isPaused(sandbox) ? sandbox : undefined;
  }

  /** Also one whose time is over, if it can be connected to again. */
  findKept(id: string): Sandbox | undefined {
    if (!ID.test(id)) return undefined;
    const text = readPrivate(this.file(id));
    if (text === undefined) return undefined;
    const sandbox = JSON.parse(text) as Sandbox;
    const keptMs = sandbox.keeps === true ? KEPT_MS : 0;
    return sandbox.endAtMs + keptMs > this.clock.wallMs() ? sandbox : undefined;
  }

  isPaused({ endAtMs }: Sandbox): boolean {
    return endAtMs <= this.clock.wallMs();
  }

  /** All that can be used or connected to, oldest first. Files of the others are removed. */
  all(): Sandbox[] {
    const found: Sandbox[] = [];
    for (const name of this.names()) {
      const id = name.replace(/\.json$/, '');
      const sandbox = this.findKept(id);
      if (sandbox) found.push(sandbox);
      else if (ID.test(id)) rmSync(this.file(id), { force: true });
    }
    return found.sort((a, b) => a.startedAtMs - b.startedAtMs || (a.id < b.id ? -1 : 1));
  }

  async create(
    about: Pick<Sandbox, 'creator' | 'templateId' | 'metadata' | 'env' | 'keeps'>,
    timeoutMs: number,
  ): Promise<Sandbox> {
    const id = `i${randomId().slice(0, 19)}`;
    const startedAtMs = this.clock.wallMs();
    const sandbox = { ...about, id, startedAtMs, endAtMs: startedAtMs + timeoutMs };
    mkdirSync(this.folder, { recursive: true, mode: 0o700 });
    await this.host.holdLease(sandboxOwner(sandbox), { name: LEASE, ttlMs: timeoutMs });
    this.write(sandbox);
    return sandbox;
  }

  /** Its time now ends after `timeoutMs`. */
  async setTimeout(sandbox: Sandbox, timeoutMs: number): Promise<Sandbox> {
    const changed = { ...sandbox, endAtMs: this.clock.wallMs() + timeoutMs };
    this.write(changed);
    await this.host.holdLease(sandboxOwner(sandbox), { name: LEASE, ttlMs: timeoutMs });
    return changed;
  }

  /** Kills everything in it. From now on it is not found. */
  async kill(sandbox: Sandbox): Promise<void> {
    rmSync(this.file(sandbox.id), { force: true });
    const owner = sandboxOwner(sandbox);
    const all = await listAll((page) => this.host.list(owner, page));
    const alive = all.filter(({ settled }) => !settled);
    const kill = { signal: 'SIGKILL', by: LEASE_ENDED };
    await Promise.allSettled(
      alive.map((process) => this.host.signal(owner, { id: process.id, ...kill })),
    );
    await this.host.holdLease(owner, { name: LEASE, ttlMs: 0 });
  }

  private names(): string[] {
    try {
      return readdirSync(this.folder);
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error;
      return [];
    }
  }

  private write(sandbox: Sandbox): void {
    replacePrivate(this.file(sandbox.id), JSON.stringify(sandbox));
  }

  private file(id: string): string {
    return join(this.folder, `${id}.json`);
  }
}
