// Metrics in the format of Prometheus: what the server has answered since it started, and the health of its host.
// Labels come from our own tables only, so that no request can create a new series.

import type { ErrorCode } from '../protocol/errors.ts';
import type { Health } from '../protocol/host-api.ts';

export class Metrics {
  private underWay = 0;
  /** By route, then by status. */
  private readonly requests = new Map<string, Map<number, number>>();
  private readonly refusals = new Map<ErrorCode, number>();

  begun(): void {
    this.underWay += 1;
  }

  /** A request that began has ended. */
  answered(status: number, route?: string, refusal?: ErrorCode): void {
    this.underWay -= 1;
    this.count(status, route);
    if (refusal) this.refusals.set(refusal, (this.refusals.get(refusal) ?? 0) + 1);
  }

  /** "none": refused before a handler was called. */
  count(status: number, route = 'none'): void {
    let counts = this.requests.get(route);
    if (!counts) this.requests.set(route, (counts = new Map()));
    counts.set(status, (counts.get(status) ?? 0) + 1);
  }

  render(health: Health, serverRssBytes: number): string {
    const { version, children } = health;
    return [
      gauge('build_info', 'Always 1; the labels say what runs.', 1, { version, children }),
      gauge('processes_live', 'Processes that have not closed.', health.live),
      gauge('processes_ended', 'Closed and lost processes that are still known.', health.ended),
      gauge('processes_degraded', 'Processes whose output cannot be stored.', health.degraded),
      gauge('waits_parked', 'Callers that are waiting.', health.parkedWaits),
      gauge('journal_bytes', 'Bytes of all journals on disk.', health.journalBytes),
      gauge('keeper_uptime_seconds', 'Since the keeper started.', health.uptimeMs / 1000),
      gauge('keeper_resident_memory_bytes', 'Memory of the keeper.', health.rssBytes),
      gauge('server_resident_memory_bytes', 'Memory of this server.', serverRssBytes),
      gauge('requests_in_flight', 'Requests that have no answer yet.', this.underWay),
      ...counter(
        'requests_total',
        'Requests by route and status.',
        Array.from(this.requests).flatMap(([route, counts]) =>
          Array.from(counts, ([status, count]): Sample => [
            `route="${route}",status="${status}"`,
            count,
          ]),
        ),
      ),
      ...counter(
        'refusals_total',
        'Requests refused, by code of the error table.',
        Array.from(this.refusals, ([code, count]): Sample => [`code="${code}"`, count]),
      ),
      '',
    ].join('\n');
  }
}

function gauge(name: string, help: string, value: number, labels = {}): string {
  const inside = Object.entries(labels).map(([label, text]) => `${label}="${String(text)}"`);
  const suffix = inside.length > 0 ? `{${inside.join(',')}}` : '';
  return `${head(name, help, 'gauge')}\nholdfast_${name}${suffix} ${value}`;
}

/** Labels and their count. */
type Sample = readonly [string, number];

function counter(name: string, help: string, samples: readonly Sample[]): string[] {
  const lines = samples.map(([labels, value]) => `holdfast_${name}{${labels}} ${value}`);
  return [head(name, help, 'counter'), ...lines];
}

function head(name: string, help: string, type: string): string {
  return `# HELP holdfast_${name} ${help}\n# TYPE holdfast_${name} ${type}`;
}
