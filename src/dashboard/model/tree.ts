// The living processes of a start as a tree, with the processor time that each used between two looks.

import type { TreeMember } from '../../protocol/host-api.ts';

export interface Look {
  readonly atMs: number;
  readonly members: readonly TreeMember[];
  readonly total: number;
}

export interface TreeRow extends TreeMember {
  readonly depth: number;
  /** Of one core; unknown at the first look. */
  readonly share: number | undefined;
}

/** Parents before their children; those that lost their parent are at the top. */
export function treeRows(now: Look, before: Look | undefined): TreeRow[] {
  const known = new Set(now.members.map(({ pid }) => pid));
  const below = new Map<number, TreeMember[]>();
  for (const member of now.members) {
    const parent = known.has(member.parent) ? member.parent : 0;
    below.set(parent, [...(below.get(parent) ?? []), member]);
  }
  const used = new Map(before?.members.map(({ pid, cpuMs }) => [pid, cpuMs]));
  const rows: TreeRow[] = [];
  const add = (parent: number, depth: number): void => {
    for (const member of below.get(parent) ?? []) {
      rows.push({ ...member, depth, share: shareOf(member, used.get(member.pid)) });
      add(member.pid, depth + 1);
    }
  };
  const shareOf = ({ cpuMs }: TreeMember, then: number | undefined): number | undefined =>
    before && then !== undefined ? (cpuMs - then) / Math.max(1, now.atMs - before.atMs) : undefined;
  add(0, 0);
  return rows;
}
