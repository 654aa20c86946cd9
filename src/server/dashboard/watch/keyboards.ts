// The keyboards that one page holds. A page types only into terminals whose keyboard it holds; what it holds it gives back when
// it goes, and the lease ends by itself when this server dies.

import { randomId } from '../../../base/ids.ts';
import type { HostApi, Owner } from '../../../protocol/host-api.ts';
import type { WatchMessage } from './watch-messages.ts';

type KeyboardMessage = Extract<WatchMessage, { type: 'hold' | 'release' | 'type' | 'resize' }>;

interface Target {
  readonly owner: Owner;
  readonly id: string;
}

/** The page renews it every few seconds while it is in front. */
const HOLD_MS = 10_000;

export class Keyboards {
  private readonly host: HostApi;
  /** The name that a refused client sees. */
  private readonly holder: string;
  private readonly held = new Map<string, Target>();

  constructor(host: HostApi, tokenId: string) {
    this.host = host;
    this.holder = `a person in the dashboard (${tokenId}, ${randomId().slice(0, 6)})`;
  }

  async obey(message: KeyboardMessage, target: Target): Promise<Record<string, unknown>> {
    const { host, holder } = this;
    const { owner, id } = target;
    switch (message.type) {
      case 'hold':
        await host.keyboard(owner, {
          id,
          holder,
          forMs: HOLD_MS,
          steal: message.steal,
          answers: true,
        });
        this.held.set(JSON.stringify(target), target);
        return { forMs: HOLD_MS };
      case 'release':
        await this.release(target);
        return {};
      case 'type':
        await host.write(owner, { id, data: Buffer.from(message.data), as: 'text', holder });
        return {};
      case 'resize':
        await host.resize(owner, { id, size: { cols: message.cols, rows: message.rows } });
        return {};
    }
  }

  async releaseAll(): Promise<void> {
    const targets = Array.from(this.held.values());
    // The lease ends by itself where this fails.
    await Promise.allSettled(targets.map((target) => this.release(target)));
  }

  private async release(target: Target): Promise<void> {
    if (!this.held.delete(JSON.stringify(target))) return;
    const { owner, id } = target;
    await this.host.keyboard(owner, { id, holder: this.holder, forMs: 0 });
  }
}
