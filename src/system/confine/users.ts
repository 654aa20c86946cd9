// Users of this machine by name, from /etc/passwd and /etc/group.

import { readFileSync } from 'node:fs';

export interface User {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly groups: readonly number[];
  readonly home: string;
}

/** Undefined if there is none with this name or number. */
export function findUser(wanted: string): User | undefined {
  for (const line of linesOf('/etc/passwd')) {
    const [name = '', , uid, gid, , home = '/'] = line.split(':');
    if (name !== wanted && uid !== wanted) continue;
    return { name, uid: Number(uid), gid: Number(gid), groups: groupsOf(name, Number(gid)), home };
  }
  return undefined;
}

function groupsOf(name: string, own: number): number[] {
  const groups = linesOf('/etc/group').flatMap((line) => {
    const [, , gid, members = ''] = line.split(':');
    return members.split(',').includes(name) ? [Number(gid)] : [];
  });
  return [...new Set([own, ...groups])];
}

function linesOf(file: string): string[] {
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line.includes(':'));
  } catch {
    return [];
  }
}
