// How owners divide a bound that all of them share (ADR 22). A lone owner may use all of it. When the bound is reached, an
// owner at or above its equal share is refused; an owner below it is still admitted, out of a reserve above the bound.

import { HoldfastError } from '../protocol/errors.ts';
import type { Owner } from '../protocol/host-api.ts';

/** Of the bound: above it, for owners below their share. */
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

  /** Equal for all owners that use anything, this one included. */
  private shareOf(owner: Owner): number {
    const owners = this.uses.size + (this.uses.has(owner) ? 0 : 1);
    return Math.max(1, Math.floor(this.limit / owners));
  }
}
