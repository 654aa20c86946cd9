// The names of our cgroups: one folder per keeper, in it one per process.

import { readlinkSync } from 'node:fs';

/** The home's key, the keeper's pid namespace, and its pid there. */
const KEEPER_GROUP = /^holdfast-([0-9a-f]+)-(?:(\d+)-)?(\d+)$/;
const MEMBER = /\/holdfast-[0-9a-f]+(?:-\d+)?-\d+\/hf-([\w-]+)/g;

export function keeperGroup(key: string): string {
  return `holdfast-${key}-${pidNamespace()}-${process.pid}`;
}

/** Whose group it is; `pid` only if it is of our pid namespace: anywhere else the number means nothing. */
export interface GroupOwner {
  readonly key: string;
  readonly pid: number | undefined;
}

export function groupOwner(folder: string): GroupOwner | undefined {
  const [, key, namespace, pid] = KEEPER_GROUP.exec(folder) ?? [];
  if (key === undefined) return undefined;
  return { key, pid: namespace === pidNamespace() ? Number(pid) : undefined };
}

/** "pid:[4026531836]" */
function pidNamespace(): string {
  return /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '0';
}

export function processGroup(serial: string): string {
  return `hf-${serial}`;
}

export function serialOf(folder: string): string | undefined {
  return folder.startsWith('hf-') ? folder.slice(3) : undefined;
}

/** Serials of the processes in whose groups a program is, from its /proc/PID/cgroup. Several if keepers are nested. */
export function groupMarkers(membership: string): string[] {
  return Array.from(membership.matchAll(MEMBER), ([, serial = '']) => serial);
}
