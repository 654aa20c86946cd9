// What is measured: what the server has answered since it started, the health of its host, and the disk of its home. Labels
// come from our own tables only, so that no request can create a new series.

import { statfs } from 'node:fs/promises';
import { Histogram, LONG_BOUNDS, type HistogramFigures } from '../../base/observe/histogram.ts';
import { HoldfastError, type ErrorCode } from '../../protocol/errors.ts';
import type { Health, HostApi, Measured, Owner, Spent } from '../../protocol/host-api.ts';
import { residentBytes } from '../../system/resources.ts';
import { hostStates, type FleetHostRow, type HostState } from '../fleet-door.ts';

/** The measured values of one name. */
export interface Family {
  /** Without the prefix "holdfast_"; it ends with its unit. */
  readonly name: string;
  readonly help: string;
  readonly type: 'gauge' | 'counter' | 'histogram';
  readonly samples: readonly Sample[];
}

export interface Sample {
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number | HistogramFigures;
}

/** What is measured beside the server itself. */
export interface MeasuredHost {
  readonly host: HostApi;
  readonly owner: Owner;
  /** The folder of the journals, if they are on this machine; undefined for a fleet. */
  readonly home: string | undefined;
  /** Of a fleet. */
  readonly hosts?: (() => readonly FleetHostRow[]) | undefined;
}

/** A request that has been answered, or whose client has gone. */
interface Answered {
  readonly status: number;
  readonly route: string | undefined;
  readonly refusal: ErrorCode | undefined;
  readonly tookUs: number;
}

/** A disk that does not answer must not hold up the other figures. */
const DISK_MS = 500;
/** Refused before a handler was called. */
const NO_ROUTE = 'none';

export class Metrics {
  private underWay = 0;
  /** By route, then by status. */
  private readonly requests = new Map<string, Map<number, number>>();
  private readonly durations = new Map<string, Histogram>();
  private readonly refusals = new Map<ErrorCode, number>();

  begun(): void {
    this.underWay += 1;
  }

  /** A request that began has ended. */
  answered({ status, route = NO_ROUTE, refusal, tookUs }: Answered): void {
    this.underWay -= 1;
    this.count(status, route);
    let durations = this.durations.get(route);
    if (!durations) this.durations.set(route, (durations = new Histogram(LONG_BOUNDS)));
    durations.add(tookUs);
    if (refusal) this.refusals.set(refusal, (this.refusals.get(refusal) ?? 0) + 1);
  }

  count(status: number, route = NO_ROUTE): void {
    let counts = this.requests.get(route);
    if (!counts) this.requests.set(route, (counts = new Map()));
    counts.set(status, (counts.get(status) ?? 0) + 1);
  }

  async families({ host, owner, home, hosts }: MeasuredHost): Promise<Family[]> {
    if (home !== undefined)
      return [
        ...healthFamilies(await host.health(owner, {})),
        ...(await diskFamilies(home)),
        ...this.serverFamilies(),
      ];
    // That no host answers is what the figures of a gateway have to say.
    const health = await host.health(owner, {}).catch((error: unknown) => {
      if (!(error instanceof HoldfastError)) throw error;
      return undefined;
    });
    return [
      ...fleetFamilies(hosts?.() ?? []),
      ...(health ? healthFamilies(health) : []),
      ...this.serverFamilies(),
    ];
  }

  private serverFamilies(): Family[] {
    const requests = Array.from(this.requests).flatMap(([route, counts]) =>
      Array.from(counts, ([status, value]): Sample => ({
        labels: { route, status: String(status) },
        value,
      })),
    );
    const durations = Array.from(this.durations, ([route, histogram]): Sample => ({
      labels: { route },
      value: histogram.figures(),
    }));
    const refusals = Array.from(this.refusals, ([code, value]) => ({ labels: { code }, value }));
    return [
      gauge('server_resident_memory_bytes', 'Memory of this server.', residentBytes()),
      gauge('requests_in_flight', 'Requests that have no answer yet.', this.underWay),
      counter('requests_total', 'Requests by route and status.', requests),
      counter('refusals_total', 'Requests refused, by code of the error table.', refusals),
      {
        name: 'request_duration_seconds',
        help: 'From a request to the end of its answer; waits and streams last as long as their clients want.',
        type: 'histogram',
        samples: durations,
      },
    ];
  }
}

/** By state and not by name: a fleet may have thousands. */
function fleetFamilies(hosts: readonly FleetHostRow[]): Family[] {
  const count = (wanted: HostState): number => hosts.filter(({ state }) => state === wanted).length;
  const draining = hosts.filter(({ beat }) => beat.drain).length;
  return [
    {
      ...gauge('fleet_hosts', 'Hosts of the fleet, by what this gateway sees of them.', 0),
      samples: hostStates.map((state) => ({ labels: { state }, value: count(state) })),
    },
    gauge('fleet_hosts_draining', 'Hosts that get no new processes.', draining),
  ];
}

function healthFamilies(health: Health): Family[] {
  const { measured } = health;
  return [
    ...hostFamilies(health),
    ...(measured ? measuredFamilies(measured) : []),
    ...(measured?.spent ? spentFamilies(measured.spent) : []),
  ];
}

function hostFamilies(health: Health): Family[] {
  const { version, children } = health;
  return [
    {
      ...gauge('build_info', 'Always 1; the labels say what runs.', 1),
      samples: [{ labels: { version, children }, value: 1 }],
    },
    gauge('processes_live', 'Processes that have not closed.', health.live),
    gauge('processes_ended', 'Closed and lost processes that are still known.', health.ended),
    gauge('processes_degraded', 'Processes whose output cannot be stored.', health.degraded),
    gauge('waits_parked', 'Callers that are waiting.', health.parkedWaits),
    gauge('journal_bytes', 'Bytes of all journals on disk.', health.journalBytes),
    gauge('keeper_uptime_seconds', 'Since the keeper started.', health.uptimeMs / 1000),
    gauge('keeper_resident_memory_bytes', 'Memory of the keeper.', health.rssBytes),
  ];
}

function measuredFamilies({ starts, exits, waits, outcomes, journals }: Measured): Family[] {
  const { limitBytes, open, refused } = journals;
  const endings = Object.entries(outcomes).map(([outcome, value]) => ({
    labels: { outcome },
    value,
  }));
  return [
    histogram(
      'start_duration_seconds',
      'From a start request at the keeper until the process runs and its start is stored.',
      starts,
    ),
    histogram(
      'exit_latency_seconds',
      'From the end of a root process until its exit is stored and waits for it are answered.',
      exits,
    ),
    histogram('wait_duration_seconds', 'How long waits took, met or not.', waits),
    counter(
      'processes_exited_total',
      'Processes that ended under this keeper, by outcome.',
      endings,
    ),
    gauge('journal_limit_bytes', 'The most that all journals may occupy.', limitBytes),
    gauge('journals_open', 'Journals that are being written.', open),
    gauge('journals_refused', 'Journals that the disk refuses now.', refused),
  ];
}

function spentFamilies(spent: Spent): Family[] {
  const limited = Object.entries(spent.limited).map(([limit, value]) => ({
    labels: { limit },
    value,
  }));
  return [
    counter('processes_cpu_seconds_total', 'Processor time of processes that have ended.', [
      { labels: { mode: 'user' }, value: spent.userMs / 1000 },
      { labels: { mode: 'system' }, value: spent.systemMs / 1000 },
    ]),
    counter(
      'processes_storage_bytes_total',
      'Bytes that ended processes have read from storage and written to it.',
      [
        { labels: { direction: 'read' }, value: spent.readBytes },
        { labels: { direction: 'written' }, value: spent.writtenBytes },
      ],
    ),
    counter('processes_limited_total', 'Ended processes that met a limit, by its kind.', limited),
  ];
}

async function diskFamilies(home: string): Promise<Family[]> {
  const late = new Promise<undefined>((resolve) => {
    setTimeout(() => resolve(undefined), DISK_MS).unref();
  });
  const found = await Promise.race([statfs(home).catch(() => undefined), late]);
  if (!found) return [];
  const { bavail, blocks, bsize } = found;
  return [
    gauge('disk_free_bytes', 'Free space on the disk of the journals.', bavail * bsize),
    gauge('disk_size_bytes', 'Size of the disk of the journals.', blocks * bsize),
  ];
}

function gauge(name: string, help: string, value: number): Family {
  return { name, help, type: 'gauge', samples: [{ value }] };
}

function counter(name: string, help: string, samples: readonly Sample[]): Family {
  return { name, help, type: 'counter', samples };
}

function histogram(name: string, help: string, value: HistogramFigures): Family {
  return { name, help, type: 'histogram', samples: [{ value }] };
}
