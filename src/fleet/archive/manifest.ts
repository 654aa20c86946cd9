// What an archive says of one process: who it was, and the checksums of its segments. Segments are the journal's own files.

import { createHash } from 'node:crypto';
import * as v from 'valibot';
import { HoldfastError } from '../../protocol/errors.ts';
import { EVERYONE, type Owner } from '../../protocol/host-api.ts';

/** It becomes part of a path. */
const hostName = v.pipe(v.string(), v.regex(/^[a-z0-9][a-z0-9-]{0,62}$/));
const tag = v.pipe(v.string(), v.maxLength(64));
const digest = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/));
const bytes = v.pipe(v.number(), v.safeInteger(), v.minValue(0), v.maxValue(32 * 1024 * 1024));

/** What a host says of a journal that has ended. */
export const journal = v.object({
  id: v.string(),
  owner: v.string(),
  serial: v.pipe(v.string(), v.regex(/^[0-9a-z]{26}$/)),
  startedAtMs: v.number(),
  closedAtMs: v.number(),
  segments: v.pipe(
    v.array(
      v.object({ number: v.pipe(v.number(), v.integer(), v.minValue(1)), bytes, sha256: digest }),
    ),
    v.minLength(1),
    v.maxLength(10_000),
  ),
});

/** `host` and `tag` are the gateway's knowledge. */
const manifest = v.object({ v: v.literal(1), host: hostName, tag, ...journal.entries });

export type Journal = v.InferOutput<typeof journal>;
export type Manifest = v.InferOutput<typeof manifest>;

export function sha256(content: Uint8Array | string): string {
  return createHash('sha256').update(content).digest('hex');
}

export function segmentKey({ host, serial }: Manifest, number: number): string {
  return `j/${host}/${serial}/${String(number).padStart(4, '0')}.hfj`;
}

/** The host is part of the key: a host that lies about an owner replaces nothing of another host. */
export function manifestKey({ id, owner, host }: Pick<Manifest, 'id' | 'owner' | 'host'>): string {
  return `${manifestPrefix(owner, id)}${host}.json`;
}

/** Of all manifests of this id; for everyone those of all owners. */
export function manifestPrefix(owner: Owner, id: string): string {
  return `m/${id}/${owner === EVERYONE ? '' : `${sha256(owner).slice(0, 32)}.`}`;
}

export function encodeManifest(content: Manifest): Buffer {
  const text = JSON.stringify(content);
  return Buffer.from(JSON.stringify({ manifest: text, sha256: sha256(text) }));
}

export function decodeManifest(stored: Buffer, key: string): Manifest {
  try {
    const outer = JSON.parse(stored.toString()) as { manifest: string; sha256: string };
    if (sha256(outer.manifest) === outer.sha256)
      return v.parse(manifest, JSON.parse(outer.manifest));
  } catch {
    // It is damaged too.
  }
  throw damaged(key);
}

export function damaged(key: string): HoldfastError {
  const problem = `"${key}" in the archive is damaged: it is not what was stored. Nothing of it is shown.`;
  return new HoldfastError('archive_damaged', problem, { key });
}
