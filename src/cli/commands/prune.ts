// `holdfast prune`

import { listAll } from '../../protocol/list-all.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { agrees } from '../output/ask.ts';
import { isError } from '../caller.ts';
import type { Command } from '../arguments/command.ts';
import { plural } from '../arguments/units.ts';

export const command: Command = {
  name: 'prune',
  usage: '[--older-than 1h] [--yes]',
  summary: 'Delete every exited process and its output.',
  options: {
    'older-than': {
      type: 'string',
      value: '1h',
      about: 'only processes that exited at least this long ago',
    },
    yes: { type: 'boolean', short: 'y', about: 'do not ask for confirmation' },
  },
  notes: [
    'Processes with live descendants are kept, so that you can still stop those. All owners, unless --owner is given.',
  ],
  read({ words, caller, out }) {
    words.expect();
    const olderMs = words.durationMs('older-than') ?? 0;
    const asks = !words.flag('yes');
    return async () => {
      const host = await caller.running();
      const processes = host ? await listAll((page) => host.list(caller.sees, page)) : [];
      const before = Date.now() - olderMs;
      const over = processes.filter((each) => isOver(each, before));
      const removed: string[] = [];
      if (asks && over.length > 0 && !(await agrees(out, questionOf(over))))
        return { result: { removed }, lines: ['Nothing was deleted.'], exitCode: 1 };
      for (const process of over) {
        const { id, owner } = process;
        try {
          await host?.remove(owner, { id });
          removed.push(id);
        } catch (error) {
          // Retention, or somebody else, was faster.
          if (!isError(error, 'not_found')) throw error;
        }
      }
      const lines = [`${plural(removed.length, 'process', 'processes')} deleted.`];
      return { result: { removed }, lines };
    };
  },
};

function questionOf(over: readonly ProcessInfo[]): string {
  const owners = new Set(over.map(({ owner }) => owner)).size;
  const whose = owners > 1 ? ` of ${owners} owners` : '';
  return `Delete ${plural(over.length, 'process', 'processes')}${whose}, and their output?`;
}

function isOver(process: ProcessInfo, beforeMs: number): boolean {
  const { state, settled, closedAtMs, exitedAtMs, startedAtMs } = process;
  if (!settled || (state !== 'closed' && state !== 'lost')) return false;
  return (closedAtMs ?? exitedAtMs ?? startedAtMs) <= beforeMs;
}
