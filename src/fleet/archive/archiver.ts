// Copies the journals of processes that have ended from their hosts into the archive. It is a subscriber of the fleet's
// completions, and acknowledges one when its manifest is stored: whatever dies in between, the next gateway continues.

import * as v from 'valibot';
import type { Clock } from '../../base/clock.ts';
import { Cancellation, pause } from '../../protocol/cancellation.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { EVERYONE, type Completion, type HostApi } from '../../protocol/host-api.ts';
import type { HostTable } from '../gateway/host-table.ts';
import type { LaneCalls } from '../gateway/lane-calls.ts';
import type { FleetOperation } from '../wire/messages.ts';
import { ProblemReport } from '../wire/problem-report.ts';
import { tagOf } from '../wire/tags.ts';
import type { ArchiveStore } from './archive-store.ts';
import {
  damaged,
  decodeManifest,
  encodeManifest,
  journal,
  manifestKey,
  segmentKey,
  sha256,
  type Journal,
  type Manifest,
} from './manifest.ts';

export interface ArchiverOptions {
  readonly store: ArchiveStore;
  readonly host: HostApi;
  readonly calls: LaneCalls;
  readonly table: HostTable;
  readonly clock: Clock;
  readonly report: (message: string) => void;
  /** When processes whose output is still open, or whose host or archive is away, are looked at again. */
  readonly againMs?: number | undefined;
}

const SUBSCRIBER = 'holdfast:archive';
const PAGE = 100;
const WAIT_MS = 20_000;
const AGAIN_MS = 5000;
/** Most outputs end with their program, or soon after it. */
const CLOSE_MS = 1000;
const AT_ONCE = 4;

export class Archiver {
  private readonly options: ArchiverOptions;
  private readonly end = new Cancellation();
  private readonly done: Promise<void>;
  private readonly problems = new ProblemReport((problem) =>
    this.options.report(`archive: ${problem}`),
  );

  constructor(options: ArchiverOptions) {
    this.options = options;
    this.done = this.run();
  }

  async close(): Promise<void> {
    this.end.abort();
    await this.done;
  }

  private async run(): Promise<void> {
    while (!this.end.aborted) {
      try {
        const { after, left } = await this.pass();
        if (left > 0) await this.pauseBeforeAgain();
        else await this.page({ after, waitMs: this.options.againMs ?? WAIT_MS });
      } catch (error) {
        if (this.end.aborted) return;
        this.problems.failed(error);
        await this.pauseBeforeAgain().catch(() => undefined);
      }
    }
  }

  private pauseBeforeAgain(): Promise<void> {
    const { clock, againMs = AGAIN_MS } = this.options;
    return pause(clock, againMs, this.end);
  }

  /** Everything that is not acknowledged, once. */
  private async pass(): Promise<{ after: number; left: number }> {
    let left = 0;
    for (let after = 0; ;) {
      const page = await this.page({ after });
      const last = page.at(-1);
      if (!last) return { after, left };
      after = last.number;
      for (let at = 0; at < page.length; at += AT_ONCE) {
        const group = page.slice(at, at + AT_ONCE);
        const archived = await Promise.all(group.map((each) => this.tryOne(each)));
        const numbers = group.filter((_, index) => archived[index]).map(({ number }) => number);
        left += group.length - numbers.length;
        if (numbers.length > 0)
          await this.options.host.acknowledge(EVERYONE, { subscriber: SUBSCRIBER, numbers });
      }
    }
  }

  private async page(position: { after: number; waitMs?: number }): Promise<readonly Completion[]> {
    const params = { subscriber: SUBSCRIBER, limit: PAGE, ...position };
    return (await this.options.host.completions(EVERYONE, params, this.end)).completions;
  }

  /** False: later. */
  private async tryOne({ id, owner }: Completion): Promise<boolean> {
    try {
      return await this.archive(id, owner);
    } catch (error) {
      // It was removed: there is nothing to keep.
      if (error instanceof HoldfastError && error.code === 'not_found') return true;
      if (this.end.aborted) throw error;
      this.problems.failed(error);
      return false;
    }
  }

  private async archive(id: string, owner: string): Promise<boolean> {
    const { host, store } = this.options;
    const { host: name = '', state } = await host.get(owner, { id }, this.end);
    const waits = [{ id, for: [{ kind: 'closed' as const }] }];
    if (state !== 'closed') await host.wait(owner, { waits, timeoutMs: CLOSE_MS }, this.end);
    const tag = tagOf(name);
    const found = await this.ask(name, owner, 'journal', { id });
    if ((found as { open?: true }).open) return false;
    const described: Journal = v.parse(journal, found);
    // A host speaks of the process that it was asked for, and of no other.
    const manifest: Manifest = { v: 1, host: name, tag, ...described, id, owner };
    const key = manifestKey(manifest);
    const stored = await store.get(key);
    if (!stored || decodeManifest(stored, key).serial !== manifest.serial) {
      for (const { number, ...segment } of manifest.segments)
        await this.copy(manifest, { number, ...segment });
      await store.put(key, encodeManifest(manifest));
    }
    await this.ask(name, owner, 'archived', { id });
    return true;
  }

  private async copy(
    manifest: Manifest,
    { number, sha256: wanted }: Manifest['segments'][number],
  ): Promise<void> {
    const { store } = this.options;
    const { host, owner, id, serial } = manifest;
    const key = segmentKey(manifest, number);
    const which = { id, serial, number };
    if (store.presign) {
      const url = await store.presign(key);
      await this.ask(host, owner, 'sendSegment', { ...which, url });
      return;
    }
    const { bytes } = (await this.ask(host, owner, 'segment', which)) as { bytes: Buffer };
    if (sha256(bytes) !== wanted) throw damaged(key);
    await store.put(key, bytes);
  }

  private ask(host: string, owner: string, op: FleetOperation, params: object): Promise<unknown> {
    return this.options.calls.call(host, { op, owner, params }, this.end);
  }
}
