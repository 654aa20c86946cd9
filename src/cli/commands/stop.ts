// `holdfast stop`

import type { Outcome } from '../../protocol/process.ts';
import type { Command } from '../command.ts';
import { isError, type Caller } from '../caller.ts';
import { forEach, type Done } from '../for-each.ts';
import { outcomeWords } from '../outcome.ts';
import { label } from '../terminal-text.ts';
import { formatDuration, plural } from '../units.ts';
import { shutdown } from './shutdown.ts';

export const command: Command = {
  name: 'stop',
  usage: '[ID...] [--grace 5s]',
  summary: 'End processes and all their descendants: TERM, a grace, then KILL.',
  options: {
    grace: { type: 'string', value: '5s', about: 'how long to wait before KILL (default 5s)' },
  },
  notes: [
    'Descendants that left the process group are ended too. Exits with 1 when anything survived, and names it.',
    'Without an id it ends everything: processes, keeper and server; what was kept stays readable.',
    'With --owner and no id it ends all processes of that owner and nothing else.',
  ],
  async run({ words, caller }) {
    const graceMs = words.durationMs('grace');
    const grace = graceMs === undefined ? {} : { graceMs };
    const named = words.exactly(0, Infinity);
    if (named.length === 0 && words.text('owner') === undefined) return shutdown(caller, graceMs);
    return forEach(
      named.length > 0 ? named : await unsettled(caller),
      async (text): Promise<Done> => {
        const { id, owner } = await caller.find(text);
        const host = await caller.host();
        try {
          const result = await host.signal(owner, {
            id,
            signal: 'terminate',
            by: caller.name,
            ...grace,
          });
          const { outcome, durationMs } = await host.get(owner, { id });
          const { signalled, escapees, survivors, escalated } = result;
          const parts = [
            outcomeWithTime(outcome, durationMs),
            `${plural(signalled.length, 'process', 'processes')} signalled`,
            ...(escapees.length > 0 ? [`${escapees.length} of them had left its group`] : []),
            ...(escalated ? ['KILL was needed'] : []),
            survivors.length > 0
              ? `SURVIVED: ${survivors.map(({ pid, command: line }) => `${pid} ${label(line)}`).join(', ')}`
              : 'nothing is left',
          ];
          return {
            result: { id, outcome, ...result },
            line: `${id}  ${parts.join('; ')}`,
            exitCode: survivors.length > 0 ? 1 : 0,
          };
        } catch (error) {
          if (!isError(error, 'not_running')) throw error;
          const { outcome } = await host.get(owner, { id });
          const ended = outcome ? `: ${outcomeWords(outcome)}` : '';
          return {
            result: { id, outcome, signalled: [] },
            line: `${id}  had already ended${ended}`,
          };
        }
      },
    );
  },
};

/** Of one owner, whatever is still alive. */
async function unsettled(caller: Caller): Promise<string[]> {
  const host = await caller.hostIfUsed();
  const processes = host ? (await host.list(caller.sees, {})).processes : [];
  return processes.filter(({ settled }) => !settled).map(({ id }) => id);
}

function outcomeWithTime(outcome: Outcome | undefined, durationMs: number): string {
  if (!outcome) return 'still running';
  // When a lost process ended nobody knows either.
  if (outcome.kind === 'lost') return outcomeWords(outcome);
  return `${outcomeWords(outcome)} after ${formatDuration(durationMs)}`;
}
