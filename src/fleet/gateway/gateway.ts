// A gateway: a host made of all hosts of a fleet. It has two connections to NATS, so that a flood of output delays no beat
// and no wait. It holds nothing that the hosts could not give again.

import type { Duplex } from 'node:stream';
import { systemClock, type Clock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { Closing } from '../../host/closing.ts';
import { LedgerTail, type LedgerTailOptions } from '../ledger/ledger-tail.ts';
import type { Owner } from '../../protocol/host-api.ts';
import { Fabric, type FabricOptions } from '../wire/fabric.ts';
import { FleetHost, type FleetHostDeps } from '../many/fleet-host.ts';
import { ArchiveReader } from '../archive/archive-reader.ts';
import type { ArchiveStore } from '../archive/archive-store.ts';
import { Archiver } from '../archive/archiver.ts';
import { HostAsker } from './host-asker.ts';
import { HostTable, type KnownHost } from './host-table.ts';
import { LaneCalls } from './lane-calls.ts';
import { Tunnels, type TunnelCaller } from './tunnels.ts';

export interface GatewayOptions extends Omit<FabricOptions, 'clock'> {
  readonly clock?: Clock;
  /** How long hosts have to report after the first connect before an answer may lack them. */
  readonly settleMs?: number;
  /** How long an answer about all hosts waits for each of them (default two seconds). */
  readonly listMs?: number;
  /** What the tokens of an owner at this gateway allow its processes, at whichever host. */
  readonly ceilingOf?: FleetHostDeps['ceilingOf'];
  /** Where the journals of ended processes are kept, and a folder of this gateway for those that are read from it. */
  readonly archive?:
    | { readonly store: ArchiveStore; readonly folder: string; readonly againMs?: number }
    | undefined;
}

export interface Gateway {
  readonly host: FleetHost;
  hosts(): KnownHost[];
  /** Resolves when hosts have had time to report. */
  readonly settled: Promise<void>;
  /** Resolves when both connections are there. */
  up(): Promise<void>;
  /** Resolves with the next change of any host. */
  changed(): Promise<void>;
  /** What the hosts have written about their processes. */
  readonly ledger: LedgerTail;
  /** The host that a process with these labels would be placed on. */
  place(owner: Owner, labels: Readonly<Record<string, string>>): Promise<string>;
  /** A stream to the server of a host. */
  tunnel(host: string, caller: TunnelCaller): Duplex;
  /** Requests and tunnels under way. */
  readonly underWay: number;
  readonly connected: boolean;
  close(): Promise<void>;
}

/** Longer than the time between two beats: after it every host that is there has been heard. */
const SETTLE_MS = 1300;

export function openGateway(options: GatewayOptions): Gateway {
  const { clock = systemClock, settleMs = SETTLE_MS, name, report, ceilingOf, listMs } = options;
  const control = new Fabric({ ...options, clock });
  const bulk = new Fabric({ ...options, clock });
  const fabrics = { control, bulk };
  const table = new HostTable({
    fabric: control,
    clock,
    gateway: name,
    returned: (host) => calls.returned(host),
  });
  const calls = new LaneCalls({ fabrics, table, clock, gateway: name });
  const tunnels = new Tunnels({ fabric: bulk, table, clock, gateway: name, ceilingOf });
  const isUp = (): boolean => problemOf([control, bulk]) === undefined;
  const settled = allUp([control, bulk]).then(
    () => new Promise<void>((resolve) => clock.after(settleMs, resolve)),
  );
  const heard: LedgerTailOptions['heard'] = (of, { t }) => void (t === 'gone' && table.forget(of));
  const isOthers: LedgerTailOptions['isOthers'] = (of, id) => table.isOthers(of, id);
  const ledger = new LedgerTail({ fabric: bulk, clock, report, heard, isOthers });
  const close = async (): Promise<void> => {
    for (const part of [calls, tunnels, table]) part.close();
    const archives = [archiver, archive].filter((part) => part !== undefined);
    await closeInTime({ archives, ledger, fabrics: [control, bulk] }, clock, report);
  };
  const { archive: kept } = options;
  const archive = kept && new ArchiveReader(kept.store, kept.folder);
  const host = new FleetHost({
    listMs,
    ceilingOf,
    archive,
    asker: new HostAsker(calls, table),
    table,
    clock,
    ledger,
    settled: () => settled,
    problem: () => problemOf([control, bulk]),
    close,
  });
  const archiver = kept && new Archiver({ ...options, ...kept, host, calls, table, clock });
  return {
    host,
    ledger,
    hosts: () => table.all(),
    settled,
    up: () => allUp([control, bulk]),
    changed: () => table.changed(),
    place: (owner, labels) => host.place(owner, labels),
    tunnel: (to, caller) => tunnels.open(to, caller),
    get underWay() {
      return calls.count() + tunnels.count;
    },
    get connected() {
      return isUp();
    },
    close,
  };
}

type Closed = { readonly close: () => Promise<void> };

/** Whatever the archive and NATS do meanwhile. */
async function closeInTime(
  parts: {
    readonly archives: readonly Closed[];
    readonly ledger: Closed;
    readonly fabrics: readonly Closed[];
  },
  clock: Clock,
  report: (message: string) => void,
): Promise<void> {
  const closing = new Closing(clock);
  const all = (closed: readonly Closed[]): Promise<unknown> =>
    Promise.all(closed.map((part) => part.close()));
  await Promise.all([
    closing.step('the archive', () => all(parts.archives)),
    closing.step('the ledger', () => parts.ledger.close()),
  ]);
  await all(parts.fabrics);
  for (const problem of closing.report.problems) report(`Closing: ${problem}.`);
}

function problemOf(fabrics: readonly Fabric[]): HoldfastError | undefined {
  const away = fabrics.find(({ connected }) => !connected);
  return away && new HoldfastError('fabric_degraded', away.problem);
}

async function allUp(fabrics: readonly Fabric[]): Promise<void> {
  for (;;) {
    const away = fabrics.find(({ connected }) => !connected);
    if (!away) return;
    await new Promise<void>((resolve) => away.onUp(resolve));
  }
}
