// `holdfast stop`

import { listAll } from '../../protocol/list-all.ts';
import type { Outcome, ProcessInfo } from '../../protocol/process.ts';
import type { Command } from '../arguments/command.ts';
import { isError, type Caller } from '../caller.ts';
import { forEach, forEachNamed, type Done } from '../for-each.ts';
import { outcomeWords } from '../output/outcome.ts';
import { leftWords } from '../output/signal-words.ts';
import { formatDuration, plural } from '../arguments/units.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'stop',
  usage: 'ID... | --all [--grace 5s]',
  summary: summaries.stop,
  examples: ['holdfast stop web', 'holdfast stop --all --grace 10s'],
  takes: 'processes',
  options: {
    all: { type: 'boolean', about: 'every process, of all owners or of the one named by --owner' },
    grace: { type: 'string', value: '5s', about: 'how long to wait before KILL (default 5s)' },
  },
  notes: [
    'Descendants that left the process group are stopped too. Exit code 1: something survived; it is named.',
    '"holdfast shutdown" ends the keeper and the server as well.',
  ],
  read({ words, caller }) {
    const graceMs = words.durationMs('grace');
    const all = words.flag('all');
    if (all && words.plain.length > 0) throw words.wrong('give ids or --all, not both');
    const named = all ? [] : words.expect('ID...');
    return async () => {
      if (!all)
        return forEachNamed(named, async (text) => end(caller, await caller.find(text), graceMs));
      const living = await unsettled(caller);
      const answer = await forEach(
        living,
        ({ id }) => id,
        (process) => end(caller, process, graceMs),
      );
      return living.length > 0 ? answer : { ...answer, lines: ['No process is running.'] };
    };
  },
};

async function end(
  caller: Caller,
  { id, owner }: ProcessInfo,
  graceMs: number | undefined,
): Promise<Done> {
  const host = await caller.host();
  try {
    const result = await host.signal(owner, {
      id,
      signal: 'terminate',
      by: caller.name,
      ...(graceMs !== undefined && { graceMs }),
    });
    const { outcome, durationMs } = await host.get(owner, { id });
    const { signalled, escapees, escalated } = result;
    const parts = [
      outcomeWithTime(outcome, durationMs),
      `${plural(signalled.length, 'process', 'processes')} signalled`,
      ...(escapees.length > 0 ? [`${escapees.length} of them had left its group`] : []),
      ...(escalated ? ['SIGKILL was needed'] : []),
      leftWords(result) || 'nothing is left',
    ];
    return {
      result: { id, outcome, ...result },
      line: `${id}  ${parts.join('; ')}`,
      exitCode: leftWords(result) === '' ? 0 : 1,
    };
  } catch (error) {
    if (!isError(error, 'not_running')) throw error;
    const { outcome } = await host.get(owner, { id });
    const ended = outcome ? `: ${outcomeWords(outcome)}` : '';
    return { result: { id, outcome, signalled: [] }, line: `${id}  had already exited${ended}` };
  }
}

/** Whatever is still alive. */
async function unsettled(caller: Caller): Promise<ProcessInfo[]> {
  // Processes of a killed keeper are found only by the next one, so it is started.
  const host = await caller.hostIfUsed();
  const processes = host ? await listAll((page) => host.list(caller.sees, page)) : [];
  return processes.filter(({ settled }) => !settled);
}

function outcomeWithTime(outcome: Outcome | undefined, durationMs: number): string {
  if (!outcome) return 'still running';
  // The time of a lost process's end is unknown, too.
  if (outcome.kind === 'lost') return outcomeWords(outcome);
  return `${outcomeWords(outcome)} after ${formatDuration(durationMs)}`;
}
