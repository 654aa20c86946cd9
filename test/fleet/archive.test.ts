// The archive of a fleet: what has ended is read when its host is gone, exactly as it was, or not at all.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { openStore, type ArchiveStore } from '../../src/fleet/archive/archive-store.ts';
import { ArchiveReader } from '../../src/fleet/archive/archive-reader.ts';
import { journalOperations } from '../../src/fleet/archive/journal-files.ts';
import type { HostApi } from '../../src/protocol/host-api.ts';
import { gatewayTo, joined, seen } from '../support/fleet.ts';
import {
  failure,
  inProcess,
  onCleanup,
  OWNER,
  startProcess,
  temporaryFolder,
  waitFor,
} from '../support/hosts.ts';
import { hasNats, LEFT_OUT, NatsServer } from '../support/nats.ts';
import { CREDENTIALS, startS3 } from '../support/s3-server.ts';
import { sized } from '../support/slow.ts';

interface Archived {
  readonly api: HostApi;
  /** The host leaves, and its home is deleted. */
  readonly lose: () => Promise<void>;
  readonly local: HostApi;
  readonly home: string;
  readonly name: string;
}

/** A host and a gateway with an archive. */
async function fleetWith(store: ArchiveStore): Promise<Archived> {
  const nats = await NatsServer.start();
  onCleanup(() => nats.remove());
  const home = temporaryFolder();
  const local = await inProcess({ folder: home });
  const servers = [nats.url];
  const { name, joiner } = await joined({ host: local, home, servers });
  const archive = { store, folder: join(temporaryFolder(), 'cache'), againMs: 50 };
  const gateway = await gatewayTo([name], { servers, archive });
  const lose = async (): Promise<void> => {
    await joiner.close();
    await seen(gateway, name, 'gone');
  };
  return { api: gateway.host, lose, local, home, name };
}

/** The store, and a promise of the manifest of a process, which is stored last. */
function watched(store: ArchiveStore): ArchiveStore & { stored(id: string): Promise<void> } {
  const keys = new Set<string>();
  const waiting = new Set<() => void>();
  return {
    place: store.place,
    get: (key) => store.get(key),
    list: (prefix) => store.list(prefix),
    remove: (key) => store.remove(key),
    ...(store.presign && { presign: store.presign }),
    put: async (key, bytes) => {
      await store.put(key, bytes);
      keys.add(key);
      for (const wake of waiting) wake();
    },
    stored: async (id) => {
      while (![...keys].some((key) => key.startsWith(`m/${id}/`)))
        await new Promise<void>((resolve) => waiting.add(resolve));
    },
  };
}

async function bytesOf(api: HostApi, id: string): Promise<Buffer> {
  const parts: Buffer[] = [];
  for (let offset = 0; ;) {
    const { bytes, end } = await api.range(OWNER, { id, offset, maxBytes: 4 * 1024 * 1024 });
    parts.push(bytes);
    offset += bytes.length;
    if (end) return Buffer.concat(parts);
  }
}

describe.skipIf(!hasNats)(`an archive${LEFT_OUT}`, () => {
  it('[FL80] in a folder: an ended process is read byte for byte, as text and by search, when its host is gone', async () => {
    const store = watched(await openStore(pathToFileURL(temporaryFolder()).href, undefined));
    const { api, lose, local } = await fleetWith(store);
    const count = sized(300_000, 8_000_000);
    const id = await startProcess(api, { command: `seq 1 ${count}; echo needle >&2; exit 7` });
    await waitFor(api, id, { kind: 'closed' });
    const before = await bytesOf(local, id);
    await store.stored(id);
    await lose();
    expect((await bytesOf(api, id)).equals(before)).toBe(true);
    const process = await api.get(OWNER, { id });
    expect(process).toMatchObject({ id, archived: true, outcome: { kind: 'exit', code: 7 } });
    expect((await api.text(OWNER, { id })).text).toContain('needle');
    expect((await api.search(OWNER, { id, pattern: 'needle' })).hits).toHaveLength(1);
    expect((await failure(api.get('other', { id }))).code).toBe('not_found');
    expect((await failure(api.get(OWNER, { id: '../../m' }))).code).toBe('not_found');
    expect((await api.get('*', { id })).owner).toBe(OWNER);
    expect((await failure(api.signal(OWNER, { id, signal: 'SIGTERM' }))).code).toBe('not_found');
  });

  it('[FL81] every flipped bit of a segment or a manifest is refused, and nothing of it is shown', async () => {
    const folder = temporaryFolder();
    const store = watched(await openStore(pathToFileURL(folder).href, undefined));
    const { api, lose } = await fleetWith(store);
    const id = await startProcess(api, { command: 'seq 1 200' });
    await waitFor(api, id, { kind: 'closed' });
    await store.stored(id);
    await lose();
    const [key = ''] = await store.list(`m/${id}/`);
    const journal = readdirSync(join(folder, 'j'), { recursive: true }).map(String);
    const segment = join('j', journal.find((name) => name.endsWith('.hfj')) ?? '');
    const cache = join(temporaryFolder(), 'cache');
    for (const path of [key, segment].map((name) => join(folder, name))) {
      const good = readFileSync(path);
      const step = sized(Math.ceil((good.length * 8) / 60), 1);
      for (let bit = 0; bit < good.length * 8; bit += step) {
        const bad = Buffer.from(good);
        bad[bit >> 3] = (bad[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        writeFileSync(path, bad);
        const reader = new ArchiveReader(store, cache);
        const found = await failure(reader.use(OWNER, id, async () => undefined));
        expect([bit, found.code]).toEqual([bit, 'archive_damaged']);
        await reader.close();
      }
      writeFileSync(path, good);
    }
    const reader = new ArchiveReader(store, cache);
    expect(await reader.use(OWNER, id, async ({ manifest }) => manifest.id)).toBe(id);
    await reader.close();
  });

  it('[FL82] in S3: hosts put segments at presigned addresses and hold no keys; an archive that is away is waited for', async () => {
    const s3 = await startS3();
    const address = `s3://bucket/fleet?endpoint=${s3.endpoint}`;
    const store = watched(await openStore(address, CREDENTIALS));
    s3.away = true;
    const { api, lose, local } = await fleetWith(store);
    const id = await startProcess(api, { command: 'seq 1 100000' });
    await waitFor(api, id, { kind: 'closed' });
    const before = await bytesOf(local, id);
    expect((await failure(store.get('x'))).code).toBe('archive_unavailable');
    s3.away = false;
    await store.stored(id);
    const puts = s3.seen.filter((each) => each.startsWith('PUT'));
    expect(
      puts.filter((each) => each.includes('/j/')).every((each) => each.endsWith(' query')),
    ).toBe(true);
    expect(puts.filter((each) => each.includes('/m/'))).toHaveLength(1);
    await lose();
    expect((await bytesOf(api, id)).equals(before)).toBe(true);
    const url = await store.presign?.('j/h/s/0001.hfj');
    const elsewhere = (url ?? '').replace('0001', '0002');
    expect((await fetch(elsewhere, { method: 'PUT', body: 'x' })).status).toBe(403);
    expect((await fetch(url ?? '', { method: 'PUT', body: 'x' })).status).toBe(200);
    const wrong = await openStore(address, { ...CREDENTIALS, secretAccessKey: 'other' });
    expect((await failure(wrong.get('x'))).message).toContain('status 403');
  });

  it('[FL83] a process that is removed through a gateway is removed from the archive', async () => {
    const store = watched(await openStore(pathToFileURL(temporaryFolder()).href, undefined));
    const { api } = await fleetWith(store);
    const id = await startProcess(api, { command: 'true' });
    await waitFor(api, id, { kind: 'closed' });
    await store.stored(id);
    await api.remove(OWNER, { id });
    expect(await store.list(`m/${id}/`)).toEqual([]);
    expect((await failure(api.get(OWNER, { id }))).code).toBe('not_found');
  });

  it('[FL83] what only the archive has left is removed too, and for everyone only that of one owner', async () => {
    const store = watched(await openStore(pathToFileURL(temporaryFolder()).href, undefined));
    const { api, lose, local } = await fleetWith(store);
    const id = await startProcess(api, { command: 'true', id: 'build' });
    await waitFor(api, id, { kind: 'closed' });
    await store.stored(id);
    await local.remove(OWNER, { id });
    await api.start('other', { command: 'true', id, waitMs: 60_000 });
    await api.remove('*', { id });
    expect(await api.get(OWNER, { id })).toMatchObject({ owner: OWNER, archived: true });
    await lose();
    expect((await failure(api.remove('other', { id }))).code).toBe('not_found');
    await api.remove(OWNER, { id });
    expect((await failure(api.get(OWNER, { id }))).code).toBe('not_found');
    expect((await failure(api.remove(OWNER, { id }))).code).toBe('not_found');
  });

  it('[FL80] more processes than are kept open are read at once', async () => {
    const store = watched(await openStore(pathToFileURL(temporaryFolder()).href, undefined));
    const { api, lose } = await fleetWith(store);
    const ids: string[] = [];
    for (let number = 0; number < 20; number += 1)
      ids.push(await startProcess(api, { command: `echo ${number}` }));
    for (const id of ids) await store.stored(id);
    await lose();
    const texts = [...ids, ...ids].map(async (id) => (await api.text(OWNER, { id })).text.trim());
    expect(await Promise.all(texts)).toEqual([...ids.keys(), ...ids.keys()].map(String));
  });

  it('[FL84] a host gives the journal of the process that is named, and a gateway takes no object without end', async () => {
    const home = temporaryFolder();
    const host = await inProcess({ folder: home });
    const { journal, segment } = journalOperations({ host, home, archived: () => undefined });
    const [mine, secret] = [
      await host.start(OWNER, { command: 'true' }),
      await host.start('other', { command: 'true' }),
    ].map(({ process }) => process.id);
    await waitFor(host, mine ?? '', { kind: 'closed' });
    await host.wait('other', { waits: [{ id: secret ?? '', for: [{ kind: 'closed' }] }] });
    const serials = [
      await journal(OWNER, { id: mine }),
      await journal('other', { id: secret }),
    ].map((found) => ('serial' in found ? found.serial : ''));
    const [own, foreign] = serials;
    expect(
      (await segment(OWNER, { id: mine, serial: own, number: 1 })).bytes.length,
    ).toBeGreaterThan(0);
    for (const serial of [foreign, `../journals/${foreign}`])
      expect((await failure(segment(OWNER, { id: mine, serial, number: 1 }))).code).toBe(
        'not_found',
      );
    const s3 = await startS3();
    const store = await openStore(`s3://bucket?endpoint=${s3.endpoint}`, CREDENTIALS);
    s3.objects.set('bucket/j/h/s/0001.hfj', Buffer.alloc(33 * 1024 * 1024));
    expect((await failure(store.get('j/h/s/0001.hfj'))).message).toContain('too large');
  });

  it('[FL83] an address that is no archive, S3 without keys or without TLS are refused', async () => {
    for (const [address, keys] of [
      ['/folder', undefined],
      ['ftp://x', undefined],
      ['s3://bucket', undefined],
      ['s3://bucket?endpoint=http://s3.example', CREDENTIALS],
    ] as const)
      expect(['invalid_input', 'forbidden']).toContain(
        (await failure(openStore(address, keys))).code,
      );
  });
});
