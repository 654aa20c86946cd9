// What confined a process and what limits did to it, in words for people and models.

import type { Cause, Confinement, LimitName } from './confinement.ts';

const NAMES: Readonly<Record<LimitName, string>> = {
  memory: 'memory limit',
  pids: 'process limit',
  cpus: 'processor limit',
  cpuSeconds: 'processor seconds',
  fileBytes: 'file size',
  openFiles: 'open files',
};

/** "the memory limit ended 2 processes". */
export function causeWords(cause: Cause): string {
  switch (cause.kind) {
    case 'memory_limit':
      return `the memory limit ended ${cause.victims} of its processes${cause.sawBytes === undefined ? '' : `, which used ${cause.sawBytes} bytes`}`;
    case 'out_of_memory':
      return `memory ran out, though not at its own limit: the kernel ended ${cause.victims} of its processes`;
    case 'pids_limit':
      return `the process limit was reached (${cause.hits} too many)`;
    case 'cpu_seconds':
      return 'it used up its processor seconds';
    case 'file_bytes':
      return 'it reached the largest file size';
  }
}

/** What of it the kernel does not enforce, or nothing does; undefined if all that was asked for holds. */
export function weaknessWords(confinement: Confinement | undefined): string | undefined {
  if (!confinement) return undefined;
  const watched = (Object.keys(NAMES) as LimitName[]).filter(
    (name) => confinement[name]?.by === 'watch',
  );
  const parts = [
    ...watched.map((name) => `${NAMES[name]} watched, not enforced by the kernel`),
    ...(confinement.missing ?? []).map((name) => `${name} not enforced`),
    ...(confinement.none ? ['not confined, as its token says'] : []),
  ];
  return parts.length === 0 ? undefined : parts.join('; ');
}

/** All of it: "memory limit 2147483648 by cgroup, fs by bubblewrap". */
export function confinementWords(confinement: Confinement): string {
  const limits = (Object.keys(NAMES) as LimitName[]).flatMap((name) => {
    const held = confinement[name];
    return held ? [`${NAMES[name]} ${held.limit} by ${held.by}`] : [];
  });
  const parts = (['fs', 'net', 'privileges', 'user', 'hidden'] as const).flatMap((name) => {
    const held = confinement[name];
    return held ? [`${name} by ${held.by}`] : [];
  });
  const { missing = [], none } = confinement;
  const lacks = [...missing.map((name) => `${name} not enforced`), ...(none ? ['nothing'] : [])];
  return [...limits, ...parts, ...lacks].join(', ');
}
