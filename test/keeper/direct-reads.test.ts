// Large output over a real keeper: read from its files by whoever can, sent to whoever cannot, and only to its owner.

import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { encodeFrame, FrameReader } from '../../src/keeper/frames.ts';
import { openHome } from '../../src/keeper/home.ts';
import type { KeeperLink } from '../../src/keeper/link.ts';
import type { Page } from '../../src/protocol/host-api.ts';
import { decodeRecords } from '../../src/protocol/record.ts';
import {
  failure,
  onCleanup,
  OWNER,
  overKeeper,
  startProcess,
  temporaryFolder,
  waitFor,
} from '../support/hosts.ts';

const BYTES = 30_000_000;
const FLOOD = `perl -e 'binmode STDOUT; for ($i = 0; $i < ${BYTES}; $i += 6) { $b .= sprintf("%05x\\n", ($i / 6) & 0xfffff); if (length $b >= 60000) { print $b; $b = "" } } print $b'`;

function expected(): string {
  const hash = createHash('sha256');
  for (let index = 0; index < BYTES / 6; index += 1000) {
    let text = '';
    for (let each = index; each < index + 1000; each += 1)
      text += `${(each & 0xfffff).toString(16).padStart(5, '0')}\n`;
    hash.update(text);
  }
  return hash.digest('hex');
}

async function followed(
  link: KeeperLink,
  id: string,
): Promise<{ digest: string; bytes: number; fromFiles: number; dense: boolean }> {
  const hash = createHash('sha256');
  let [bytes, fromFiles, lastSeq, dense] = [0, 0, 0, true];
  for (let after = 0, end = false; !end;) {
    const asked = { id, after, maxBytes: 1024 * 1024, waitMs: 60_000, paceBytes: 16 * 1024 * 1024 };
    const page = await link.read(OWNER, asked);
    for (const event of decodeRecords(page.records)) {
      dense &&= event.seq === lastSeq + 1;
      lastSeq = event.seq;
      if (event.kind !== 'output') continue;
      hash.update(event.data);
      bytes += event.data.length;
    }
    if (page.release) fromFiles += page.records.length;
    page.release?.();
    ({ nextAfter: after, end } = page);
  }
  return { digest: hash.digest('hex'), bytes, fromFiles, dense };
}

describe('large output', () => {
  it('[FD8] is read from the files while it comes and after it has ended, every byte once', async () => {
    const link = await overKeeper();
    const id = await startProcess(link, { command: FLOOD });
    const live = await followed(link, id);
    const after = await followed(link, id);
    const digest = expected();
    for (const { fromFiles: _, ...read } of [live, after])
      expect(read).toEqual({ digest, bytes: BYTES, dense: true });
    // While it comes, a reader that keeps up is given small pages.
    expect(after.fromFiles).toBeGreaterThan(BYTES / 2);
  });

  it('[FD9] crosses the socket for a caller that does not say that it is near, and for nobody but its owner', async () => {
    const home = temporaryFolder();
    const link = await overKeeper({ folder: home });
    const id = await startProcess(link, { command: 'head -c 2000000 /dev/zero' });
    await waitFor(link, id, { kind: 'closed' });
    const { nextAfter } = await link.read(OWNER, { id, after: 0, maxBytes: 1024 * 1024 });
    const asked = { op: 'read', params: { id, after: nextAfter, maxBytes: 1024 * 1024 } };
    const answers = await askRaw(home, [
      { id: 1, owner: OWNER, ...asked },
      { id: 2, owner: OWNER, near: true, ...asked },
      { id: 3, owner: 'somebody else', near: true, ...asked },
    ]);
    const [far, near, stranger] = answers;
    expect(far?.result?.records.length).toBeGreaterThan(64 * 1024);
    expect(near?.result).toHaveProperty('extent.firstSeq', nextAfter + 1);
    expect(near?.result).not.toHaveProperty('records');
    expect(stranger?.error?.code).toBe('not_found');
    expect((await failure(link.read('somebody else', { id }))).code).toBe('not_found');
  });
});

interface RawAnswer {
  readonly id: number;
  readonly result?: Page;
  readonly error?: { readonly code: string };
}

/** The answers in the order of the requests. */
async function askRaw(
  home: string,
  requests: readonly ({ id: number } & Record<string, unknown>)[],
): Promise<RawAnswer[]> {
  const socket = connect(openHome(home).socket);
  onCleanup(() => void socket.destroy());
  const reader = new FrameReader();
  const answers: RawAnswer[] = [];
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject);
    socket.on('data', (chunk: Buffer) => {
      for (const message of reader.push(chunk))
        if ('id' in (message as RawAnswer)) answers.push(message as RawAnswer);
      if (answers.length === requests.length) resolve();
    });
    for (const request of requests) for (const part of encodeFrame(request)) socket.write(part);
  });
  return answers.sort((a, b) => a.id - b.id);
}
