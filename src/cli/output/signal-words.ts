// Describes what a signal left alive or could not reach.

import type { RefusedSignal, SignalResult, Survivor } from '../../protocol/host-api.ts';
import { quote } from './terminal-text.ts';

const reasons: Record<RefusedSignal['reason'], string> = {
  not_permitted: 'it belongs to another user',
  too_many_files: 'the keeper has no free file descriptor',
  unsupported: 'the kernel does not offer or allow pidfd_open',
};

/** A process that is alive or was not reached, and why, where that is known. */
export function leftOver({ pid, command, reason }: LeftOver): string {
  return `${pid} ${quote(command)}${reason === undefined ? '' : ` (${reasons[reason]})`}`;
}

type LeftOver = Survivor & { readonly reason?: RefusedSignal['reason'] | undefined };

/** Empty when every process was reached and, after terminate and kill, none is left. */
export function leftWords({ survivors, refused = [], unsearched }: SignalResult): string {
  const known = new Map(refused.map(({ pid, reason }) => [pid, reason]));
  const words = (left: Survivor): string => leftOver({ ...left, reason: known.get(left.pid) });
  const unreached = refused.filter(({ pid }) => !survivors.some((other) => other.pid === pid));
  return [
    ...(survivors.length > 0 ? [`SURVIVED: ${survivors.map(words).join(', ')}`] : []),
    ...(unreached.length > 0 ? [`NOT SIGNALLED: ${unreached.map(words).join(', ')}`] : []),
    ...(unsearched
      ? ['could not look for descendants outside its group: no free file descriptor']
      : []),
  ].join('; ');
}
