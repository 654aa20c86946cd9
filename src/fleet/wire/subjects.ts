// The subjects on NATS. Names of hosts and gateways are single tokens of a subject; owners, ids and labels never are: they
// travel inside messages.

import { HoldfastError } from '../../protocol/errors.ts';

/** No dots, wildcards, spaces or capitals: two names never differ only in what a file system or DNS ignores. */
const NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;

/** control: answers that are small or awaited. bulk: output, on a connection of its own. */
export type Lane = 'control' | 'bulk';
/** tunnel: bytes of tunnels, on the connection of bulk. */
type AnswerLane = Lane | 'tunnel';

export function checkName(kind: 'host' | 'gateway', name: string): string {
  if (NAME.test(name)) return name;
  const shown = JSON.stringify(name.length > 80 ? `${name.slice(0, 77)}...` : name);
  const problem = `${shown} is not a name of a ${kind}: 1 to 63 lower-case letters, digits and "-".`;
  throw new HoldfastError('invalid_input', problem, { field: 'name' });
}

/** A name for this machine: its host name with everything else replaced. */
export function nameFrom(text: string): string {
  const plain = text.toLowerCase().replace(/[^a-z0-9]+/g, '-');
  return plain.replace(/^-+/, '').slice(0, 63).replace(/-+$/, '') || 'host';
}

export const subjects = {
  /** Requests to a host. */
  asks: (host: string) => `hf.h.${host}.op`,
  /** Messages about requests under way: continue, cancel, credit. */
  notes: (host: string) => `hf.h.${host}.off`,
  /** Messages of tunnels. The reply subject names the tunnel. */
  tunnels: (host: string) => `hf.h.${host}.tun`,
  /** Every host answers with a beat. */
  rollCall: 'hf.h._all.roll',
  /** From a host or a gateway to every gateway. */
  up: (name: string, kind: 'beat' | 'hello' | 'bye') => `hf.up.${name}.${kind}`,
  allUp: 'hf.up.*.*',
  /** Where the answer to one request goes. */
  answer: (gateway: string, host: string, lane: AnswerLane, number: number) =>
    `_hf.r.${gateway}.${host}.${lane}.${number}`,
  answersTo: (gateway: string, lane: AnswerLane) => `_hf.r.${gateway}.*.${lane}.*`,
} as const;

/** "hf.up.NAME.KIND" */
export function readUp(subject: string): { name: string; kind: string } | undefined {
  const [hf, up, name, kind, ...rest] = subject.split('.');
  if (hf !== 'hf' || up !== 'up' || name === undefined || kind === undefined) return undefined;
  return rest.length === 0 && NAME.test(name) ? { name, kind } : undefined;
}

/** "_hf.r.GATEWAY.HOST.LANE.NUMBER": undefined for anything else, so that a request never decides where a host publishes. */
export function readAnswer(
  subject: string | undefined,
): { gateway: string; host: string; lane: AnswerLane; number: number } | undefined {
  const tokens = subject?.split('.') ?? [];
  const [top, r, gateway = '', host = '', lane, number = ''] = tokens;
  if (tokens.length !== 6 || top !== '_hf' || r !== 'r') return undefined;
  if (!NAME.test(gateway) || !NAME.test(host) || !/^\d{1,15}$/.test(number)) return undefined;
  if (lane !== 'control' && lane !== 'bulk' && lane !== 'tunnel') return undefined;
  return { gateway, host, lane, number: Number(number) };
}
