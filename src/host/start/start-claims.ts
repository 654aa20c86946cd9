// The key and the id of a start, which no other start may use at the same time, and the refusals of starts.

import { readFileSync } from 'node:fs';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Owner } from '../../protocol/host-api.ts';
import type { StartSpec } from '../../protocol/operations.ts';
import { idTaken } from '../registry.ts';

export function hostClosed(): HoldfastError {
  return new HoldfastError('host_closed', 'The host has been closed.');
}

export function noLease(name = ''): HoldfastError {
  const problem = `The lease "${name}" is not open: it ran out, was ended, or never was opened.`;
  return new HoldfastError('lease_ended', problem, { lease: name });
}

/** The key and the id that no other start may use while this one is pending. */
export function claimsOf(owner: Owner, { key, id }: StartSpec): string[] {
  return [
    ...(key === undefined ? [] : [`key ${owner.length}:${owner}${key}`]),
    ...(id === undefined ? [] : [idClaim(owner, id)]),
  ];
}

export function idClaim(owner: Owner, id: string): string {
  return `id ${owner.length}:${owner}${id}`;
}

export function conflict({ key, id }: StartSpec, aboutId: boolean): HoldfastError {
  if (aboutId || key === undefined) return idTaken(id ?? '');
  const message = `The key "${key}" was used for a start with different inputs.`;
  return new HoldfastError('key_conflict', message);
}

export function readBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return 'unknown';
  }
}
