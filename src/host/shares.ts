// How owners share a limit (ADR 22). A single owner may use all of it. At the limit, an owner at or above its equal
// share is refused; an owner below it is still admitted, from a reserve above the limit.

import { HoldfastError } from '../protocol/errors.ts';
import type { Owner } from '../protocol/host-api.ts';

/** Fraction of the limit above it, for owners below their share. */
const RESERVE = 1 / 4;

export class Shares {
  total = 0;
  private readonly uses = new Map<Owner, number>();
  private readonly name: string;
  private readonly limit: number;

  constructor(name: string, limit: number) {
    this.name = name;
    this.limit = limit;
  }

  add(owner: Owner): void {
    this.uses.set(owner, this.useOf(owner) + 1);
    this.total += 1;
  }

  delete(owner: Owner): void {
    const left = this.useOf(owner) - 1;
    if (left > 0) this.uses.set(owner, left);
    else this.uses.delete(owner);
    this.total -= 1;
  }

  useOf(owner: Owner): number {
    return this.uses.get(owner) ?? 0;
  }

  /** Whether this owner may use one more. */
  admits(owner: Owner): boolean {
    if (this.total < this.limit) return true;
    const most = this.limit + Math.max(1, Math.floor(this.limit * RESERVE));
    return this.total < most && this.useOf(owner) < this.shareOf(owner);
  }

  refusal(owner: Owner, what: string): HoldfastError {
    const { name, limit, total } = this;
    const [used, share] = [this.useOf(owner), this.shareOf(owner)];
    const problem = `${total} ${what}, and the limit "${name}" is ${limit}. Owner "${owner}" has ${used}; its share is ${share}.`;
    return new HoldfastError('limit_reached', problem, { limit: name, used, share });
  }

  /** Equal for all owners that use anything, including this one. */
  private shareOf(owner: Owner): number {
    const owners = this.uses.size + (this.uses.has(owner) ? 0 : 1);
    return Math.max(1, Math.floor(this.limit / owners));
  }
}
