// Which host has a key, a chosen id or a workspace. The first gateway that claims one decides; every other one follows it, so
// that two gateways never start one key twice. Claims last 7 days after their start; the places of workspaces stay.

import type { Clock } from '../../base/clock.ts';
import type { Owner } from '../../protocol/host-api.ts';
import type { LedgerTail } from './ledger-tail.ts';
import { Refused, type Store } from './store.ts';
import { CLAIMS, KEPT, ledgerSubjects } from './streams.ts';

export interface Name {
  readonly kind: 'key' | 'id' | 'place';
  readonly text: string;
}

export interface Claim {
  /** Undefined: nobody has it, or a host that has left or was forgotten. */
  readonly host: string | undefined;
  /** Of the message that says it. */
  readonly seq: number;
}

/** A gateway that has just started reads the ledger first. */
const OPENING_MS = 3000;
const RETRY_MS = 250;
const MOST_TRIES = 10;

export class Claims {
  private readonly tail: LedgerTail;
  private readonly clock: Clock;

  constructor(tail: LedgerTail, clock: Clock) {
    this.tail = tail;
    this.clock = clock;
  }

  /** Where claims are kept. undefined: the fleet has no ledger. Throws if JetStream does not answer. */
  async store(): Promise<Store | undefined> {
    if (!(await this.tail.isThere())) return undefined;
    const untilUs = this.clock.nowUs() + OPENING_MS * 1000;
    for (;;) {
      const { kept } = this.tail;
      if (kept) return kept;
      if (this.clock.nowUs() > untilUs) throw new Error('the ledger is not open');
      await this.tail.nextChange(RETRY_MS);
    }
  }

  async read(store: Store, owner: Owner, name: Name): Promise<Claim> {
    const stored = await store.last(name.kind === 'place' ? KEPT : CLAIMS, subjectOf(owner, name));
    if (!stored) return { host: undefined, seq: 0 };
    const { host } = JSON.parse(Buffer.from(stored.bytes).toString()) as { host: string };
    return { host: this.tail.departed.has(host) ? undefined : host, seq: stored.seq };
  }

  /** The host that has it, as far as JetStream answers now. */
  async known(owner: Owner, name: Name): Promise<string | undefined> {
    const { kept } = this.tail;
    if (!kept) return undefined;
    try {
      return (await this.read(kept, owner, name)).host;
    } catch {
      // Then what the hosts say has to do.
      return undefined;
    }
  }

  /** `before`: what was read. Returns the host that has it now: this one, or that of a claim that was first. */
  async take(
    store: Store,
    owner: Owner,
    { name, host, before }: { readonly name: Name; readonly host: string; readonly before: Claim },
  ): Promise<string> {
    const subject = subjectOf(owner, name);
    const bytes = Buffer.from(JSON.stringify({ host }));
    for (let [claim, tries] = [before, 0]; tries < MOST_TRIES; tries += 1) {
      try {
        await store.append(subject, bytes, claim.seq);
        return host;
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
      }
      claim = await this.read(store, owner, name);
      if (claim.host !== undefined) return claim.host;
    }
    throw new Error('the claim changes all the time');
  }
}

function subjectOf(owner: Owner, { kind, text }: Name): string {
  return kind === 'place'
    ? ledgerSubjects.kept(kind, owner, text)
    : ledgerSubjects.claim(kind, owner, text);
}
