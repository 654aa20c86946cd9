// Limits that the kernel enforces for a cgroup: on machines where the keeper gets controllers, such as that of `npm run test:cgroup`.

import { ownGroup } from '../../src/system/confine/cgroups.ts';
import { inProcess, OWNER } from './hosts.ts';

const means = await (await inProcess({ groups: true })).enforcement(OWNER, {});
export const hasControllers = [means.memory, means.pids, means.cpus].every(
  ({ by }) => by === 'cgroup',
);
if (!hasControllers)
  console.warn(
    `left out: limits by cgroup, because ${means.memory.why}; "npm run test:cgroup" has them`,
  );

/** The group that keepers of tests are started in. */
export function groupOfTests(): string {
  const own = ownGroup();
  if (typeof own === 'string') return own;
  throw new Error(own.why);
}

/** Shell words for a program that fills so much memory and then does `more`. */
export function fill(megabytes: number, more = ''): string {
  return `perl -e '$x = "x" x ${megabytes * 1_000_000}; ${more}'`;
}
