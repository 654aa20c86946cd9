// Which host a new process gets: among those that fit, the best of three at random. Two gateways that see the same beats
// then do not choose the same host, and no host is asked before it is chosen.

import { createHash } from 'node:crypto';
import { HoldfastError } from '../../protocol/errors.ts';
import type { KnownHost } from '../gateway/host-table.ts';

/** A label of a start that begins like this selects hosts: "host.name" by name, "host.pool" by the host's label "pool". */
const SELECTS = 'host.';
/** Processes with the same value of this label stay on one host, where their files are. */
export const WORKSPACE = 'workspace';
const CHOICES = 3;

type Labels = Readonly<Record<string, string>>;

/** The hosts that a start may run on now. Throws `no_host` with the reason if there is none. */
export function fittingHosts(hosts: readonly KnownHost[], labels: Labels = {}): KnownHost[] {
  const wanted = Object.entries(labels).filter(([name]) => name.startsWith(SELECTS));
  const labelled = hosts.filter((host) => wanted.every(([name, value]) => has(host, name, value)));
  const fitting = labelled.filter(({ state, beat }) => state === 'here' && !beat.drain);
  if (fitting.length > 0) return fitting;
  const which = wanted.map(([name, value]) => `${name}=${value}`).join(', ');
  const among = wanted.length === 0 ? 'host' : `host with ${which}`;
  if (labelled.length === 0) throw new HoldfastError('no_host', `There is no ${among}.`);
  const drained = labelled.filter(({ beat }) => beat.drain).length;
  const problem = `No ${among} takes a process: of ${labelled.length}, ${drained} are draining and ${labelled.length - drained} do not answer.`;
  throw new HoldfastError('no_host', problem);
}

function has({ name, beat }: KnownHost, label: string, value: string): boolean {
  const field = label.slice(SELECTS.length);
  return field === 'name' ? name === value : beat.labels[field] === value;
}

/** `underWay`: starts that are not in the beats yet. */
export function bestHost(
  hosts: readonly KnownHost[],
  underWay: (host: string) => number,
  random: () => number = Math.random,
): KnownHost | undefined {
  const left = [...hosts];
  let best: { host: KnownHost; score: number } | undefined;
  for (let choice = 0; choice < CHOICES && left.length > 0; choice += 1) {
    const [host] = left.splice(Math.floor(random() * left.length), 1);
    if (!host) break;
    const score = scoreOf(host, underWay(host.name));
    if (!best || score < best.score) best = { host, score };
  }
  return best?.host;
}

/** How full a host is. The load counts half a process per processor. */
function scoreOf({ beat }: KnownHost, underWay: number): number {
  return (beat.live + underWay + 0.5 * beat.load * beat.cpus) / Math.max(1, beat.cpus);
}

/** The same host for the same text at every gateway that knows the same hosts. */
export function hostByHash(hosts: readonly KnownHost[], text: string): KnownHost | undefined {
  let best: { host: KnownHost; weight: string } | undefined;
  for (const host of hosts) {
    const weight = createHash('sha256').update(`${host.name}\n${text}`).digest('hex');
    if (!best || weight > best.weight) best = { host, weight };
  }
  return best?.host;
}
