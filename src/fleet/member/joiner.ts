// The host's side of a fleet: it dials out to NATS, answers gateways, and says once a second that it is there. The beat has
// a timer of its own, so no request delays it.

import { availableParallelism, loadavg } from 'node:os';
import type { Clock } from '../../base/clock.ts';
import { globMatcher } from '../../base/glob.ts';
import { randomId } from '../../base/ids.ts';
import { VERSION } from '../../base/version.ts';
import { EVERYONE, type HostApi } from '../../protocol/host-api.ts';
import { Closing } from '../../host/closing.ts';
import { LedgerWriter } from '../ledger/ledger-writer.ts';
import { Fabric, type FabricOptions } from '../wire/fabric.ts';
import type { Beat } from '../wire/messages.ts';
import { journalOperations, type JournalFilesOptions } from '../archive/journal-files.ts';
import { ServedCalls } from './served-calls.ts';
import { ServedTunnels, type ServeStream } from './served-tunnels.ts';
import { subjects } from '../wire/subjects.ts';

export interface JoinerOptions extends FabricOptions {
  readonly clock: Clock;
  readonly host: HostApi;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Globs of the owners that gateways may act for; by default all. */
  readonly owners?: readonly string[] | undefined;
  readonly drain?: boolean | undefined;
  /** The state folder of the host; without it nothing of this host is archived. */
  readonly home?: string | undefined;
  /** Serves what gateways tunnel to this host. */
  readonly serve?: ServeStream | undefined;
}

const BEAT_MS = 1000;
/** Longer than the ledger has for the last word of a host. */
const LEDGER_CLOSE_MS = 6000;
/** How often the keeper is asked for its numbers. */
const LOOK_MS = 2000;

export class Joiner {
  private readonly options: JoinerOptions;
  private readonly fabric: Fabric;
  private readonly calls: ServedCalls;
  /** What this host tells the ledger of the fleet. */
  readonly ledger: LedgerWriter;
  private readonly tunnels: ServedTunnels;
  private readonly boot = randomId();
  private drains: boolean;
  private seen = { live: 0, liveMost: 0, keeperPid: 0 };
  private closed = false;
  private cancelBeat: (() => void) | undefined;
  private cancelLook: (() => void) | undefined;

  constructor(options: JoinerOptions) {
    this.options = options;
    this.drains = options.drain ?? false;
    const { clock, host, name, owners, serve, home } = options;
    const fabric = (this.fabric = new Fabric(options));
    this.ledger = new LedgerWriter({ ...options, fabric });
    const admits = owners === undefined ? () => true : globMatcher(owners);
    const { boot } = this;
    const member =
      home === undefined
        ? undefined
        : journalOperations({ host, home, archived: (process) => void this.noteArchived(process) });
    this.calls = new ServedCalls({ fabric, clock, host, name, boot, admits, member });
    this.tunnels = new ServedTunnels({ fabric, clock, name, boot, admits, serve });
    fabric.subscribe(subjects.tunnels(name), (message) => this.tunnels.heard(message));
    fabric.subscribe(subjects.asks(name), (message) => this.calls.asked(message));
    fabric.subscribe(subjects.notes(name), (message) => this.calls.noted(message));
    fabric.subscribe(subjects.rollCall, () => this.say('beat'));
    fabric.onUp(() => this.say('hello'));
    this.beatLater();
    this.lookLater(0);
  }

  /** Requests of gateways under way. */
  get underWay(): number {
    return this.calls.count;
  }

  /** No new processes are placed here; those that run continue. */
  drain(drains: boolean): void {
    this.drains = drains;
    this.say('beat');
  }

  /** Without a ledger the manifest in the archive says it. */
  private async noteArchived(process: Parameters<JournalFilesOptions['archived']>[0]) {
    await this.ledger.append([{ t: 'archived', ...process }]).catch(() => undefined);
  }

  /** Says goodbye, so that gateways do not take the silence for a failure. */
  async close({ leaves = false } = {}): Promise<void> {
    this.closed = true;
    this.cancelBeat?.();
    this.cancelLook?.();
    this.say('bye');
    this.calls.close();
    this.tunnels.close();
    const last = leaves ? ({ t: 'left' } as const) : undefined;
    const closing = new Closing(this.options.clock);
    await closing.step('the ledger', () => this.ledger.close(last), LEDGER_CLOSE_MS);
    await this.fabric.close();
    for (const problem of closing.report.problems) this.options.report(`Closing: ${problem}.`);
  }

  private say(kind: 'beat' | 'hello' | 'bye'): void {
    const { name, clock, labels = {} } = this.options;
    const cpus = availableParallelism();
    const beat: Beat = {
      v: 1,
      boot: this.boot,
      version: VERSION,
      nowMs: clock.nowUs() / 1000,
      ...this.seen,
      load: (loadavg()[0] ?? 0) / cpus,
      cpus,
      drain: this.drains,
      labels: { ...labels },
    };
    this.fabric.publish(subjects.up(name, kind), Buffer.from(JSON.stringify(beat)));
  }

  private beatLater(): void {
    this.cancelBeat = this.options.clock.after(BEAT_MS, () => {
      this.say('beat');
      this.beatLater();
    });
  }

  private lookLater(ms = LOOK_MS): void {
    this.cancelLook = this.options.clock.after(ms, () => void this.look());
  }

  /** A keeper that does not answer leaves the numbers as they were; its requests say what is wrong. */
  private async look(): Promise<void> {
    const { host } = this.options;
    try {
      const { live, pid: keeperPid } = await host.health(EVERYONE, {});
      const { liveCount: liveMost } = await host.limits(EVERYONE, {});
      this.seen = { live, liveMost, keeperPid };
    } catch {
      // The next look is soon.
    }
    if (!this.closed) this.lookLater();
  }
}
