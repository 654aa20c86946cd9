// What a host does for an archive: it names the segments of a journal that has ended, gives their bytes, or puts them where a
// gateway says. They are read as they are on disk.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { errnoOf } from '../../base/disk.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { HostApi, Owner } from '../../protocol/host-api.ts';
import { decodeRecords } from '../../protocol/record.ts';
import { parseSegmentName, segmentName } from '../../journal/read/segment.ts';
import { isLoopback } from '../wire/addresses.ts';
import { sha256, type Journal } from './manifest.ts';

export interface JournalFilesOptions {
  readonly host: HostApi;
  /** The state folder of the host. */
  readonly home: string;
  /** The archive has all of it. */
  readonly archived: (process: {
    readonly id: string;
    readonly owner: Owner;
    readonly startedAtMs: number;
  }) => void;
}

const SEND_MS = 60_000;
const about = v.object({ id: v.string() });
const place = { ...about.entries, serial: v.string(), number: v.number() };
const segment = v.object(place);
const sending = v.object({ ...place, url: v.string() });

/** Operations of a member beyond those of a host. All of them can be repeated. */
export function journalOperations(options: JournalFilesOptions) {
  const { host, archived } = options;
  const folder = join(options.home, 'journals');
  return {
    journal: (owner: Owner, params: unknown) =>
      describe(host, folder, owner, v.parse(about, params).id),
    segment: async (owner: Owner, params: unknown) => {
      const { id, serial, number } = v.parse(segment, params);
      return { bytes: await bytesOf(host, folder, owner, { id, serial, number }) };
    },
    sendSegment: async (owner: Owner, params: unknown) => {
      const { url, ...which } = v.parse(sending, params);
      await send(url, await bytesOf(host, folder, owner, which));
      return {};
    },
    archived: async (owner: Owner, params: unknown) => {
      const { id } = v.parse(about, params);
      const { startedAtMs } = await host.get(owner, { id });
      archived({ id, owner, startedAtMs });
      return {};
    },
  };
}

async function describe(
  host: HostApi,
  folder: string,
  owner: Owner,
  id: string,
): Promise<Journal | { readonly open: true }> {
  const { state, startedAtMs, closedAtMs, owner: of } = await host.get(owner, { id });
  if (state !== 'closed' || closedAtMs === undefined) return { open: true };
  const serial = await serialOf(host, owner, id);
  const names = (await readdir(folder)).flatMap((name) => parseSegmentName(name) ?? []);
  const numbers = names.filter((name) => name.id === serial).map(({ number }) => number);
  const segments = [];
  for (const number of numbers.sort((a, b) => a - b)) {
    const bytes = await bytesOf(host, folder, owner, { id, serial, number });
    segments.push({ number, bytes: bytes.length, sha256: sha256(bytes) });
  }
  return { id, owner: of, serial, startedAtMs, closedAtMs, segments };
}

/** It is in the first event of the journal. */
async function serialOf(host: HostApi, owner: Owner, id: string): Promise<string> {
  const page = await host.read(owner, { id, after: 0, maxBytes: 1 });
  const [first] = decodeRecords(page.records);
  page.release?.();
  const { serial } = (first?.kind === 'started' ? first.body : {}) as { serial?: unknown };
  if (typeof serial === 'string') return serial;
  throw new HoldfastError('journal_damaged', `The journal of "${id}" has no beginning.`, { id });
}

/** A file may be used again for another process: the process has to be there before and after. */
async function bytesOf(
  host: HostApi,
  folder: string,
  owner: Owner,
  { id, serial, number }: v.InferOutput<typeof segment>,
): Promise<Buffer> {
  const before = await host.get(owner, { id });
  // A gateway names a process of this owner, and gets no journal of another one.
  if (serial !== (await serialOf(host, owner, id))) throw gone(id);
  try {
    const bytes = await readFile(join(folder, segmentName(serial, number)));
    const after = await host.get(owner, { id });
    if (before.startedAtMs === after.startedAtMs && before.pid === after.pid) return bytes;
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
  }
  throw gone(id);
}

function gone(id: string): HoldfastError {
  return new HoldfastError('not_found', `The journal of "${id}" is gone.`, { id });
}

async function send(address: string, bytes: Buffer): Promise<void> {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (
    !url ||
    (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback(url.hostname)))
  )
    throw new HoldfastError('forbidden', 'A segment is sent over https only.');
  let status: number;
  try {
    const answer = await fetch(url, {
      method: 'PUT',
      body: new Uint8Array(bytes),
      redirect: 'error',
      signal: AbortSignal.timeout(SEND_MS),
    });
    await answer.body?.cancel();
    ({ status } = answer);
  } catch (error) {
    // The query of the address is a secret.
    throw away(url, error instanceof Error ? error.message : String(error));
  }
  if (status !== 200) throw away(url, `status ${status}`);
}

function away({ host }: URL, why: string): HoldfastError {
  return new HoldfastError('archive_unavailable', `The archive at ${host} failed: ${why}.`);
}
