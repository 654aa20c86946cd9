// What the living processes of a start are and use, for people who look at them.

import type { Results, TreeMember } from '../../protocol/host-api.ts';
import { commandOf, type ProcessEntry } from '../../system/proc-table.ts';
import { cpuMsOf, residentBytesOf } from '../../system/resources.ts';

/** Each is read in about 50 µs, in one turn of the event loop. */
const MOST_MEMBERS = 500;
const MOST_COMMAND = 400;

export function treeOf(entries: readonly ProcessEntry[]): Results['tree'] {
  const members = entries.slice(0, MOST_MEMBERS).map(memberOf);
  return { members, total: entries.length };
}

function memberOf({ pid, parent, state }: ProcessEntry): TreeMember {
  return {
    pid,
    parent,
    state,
    command: commandOf(pid).slice(0, MOST_COMMAND),
    cpuMs: cpuMsOf(pid),
    memoryBytes: residentBytesOf(pid),
  };
}
