// `holdfast prune`

import { listAll } from '../../protocol/list-all.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { agrees } from '../output/ask.ts';
import { Progress } from '../output/progress.ts';
import type { Command } from '../arguments/command.ts';
import { removeExited, whyKept } from '../local/exited.ts';
import { plural } from '../arguments/units.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'prune',
  usage: '[--older-than 1h] [--yes]',
  summary: summaries.prune,
  examples: ['holdfast prune', 'holdfast prune --older-than 1h --yes'],
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
      const exited = processes.filter((each) => whyKept(each, { olderMs }) === undefined);
      const removed: string[] = [];
      if (asks && exited.length > 0 && !(await agrees(out, questionOf(exited))))
        return { result: { removed }, lines: ['Nothing was deleted.'], exitCode: 1 };
      const progress = new Progress(out, (done, all) => `${done} of ${all} deleted`);
      for (const process of exited) {
        if (host && (await removeExited(host, process))) removed.push(process.id);
        progress.at(removed.length, exited.length);
      }
      const lines = [`${plural(removed.length, 'process', 'processes')} deleted.`];
      return { result: { removed }, lines };
    };
  },
};

function questionOf(exited: readonly ProcessInfo[]): string {
  const owners = new Set(exited.map(({ owner }) => owner)).size;
  const whose = owners > 1 ? ` of ${owners} owners` : '';
  return `Delete ${plural(exited.length, 'process', 'processes')}${whose}, and their output?`;
}
