// The journals of a home, read from their files without a keeper and without changing them.

import { join } from 'node:path';
import { errnoOf, systemDisk, type Disk } from '../../base/disk.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { ProcessEvent } from '../../protocol/event.ts';
import type { Missed, Owner } from '../../protocol/host-api.ts';
import { decodeRecords } from '../../protocol/record.ts';
import { EndedJournal } from '../../journal/read/ended-journal.ts';
import { readPage } from '../../journal/read/reader.ts';
import { listJournals, openJournal, type FoundJournal } from '../../journal/read/recovery.ts';
import type { ProcessFacts } from '../../host/process/facts.ts';
import { choose } from '../caller.ts';

/** Opening cuts the torn end of a file and removes one that was never begun; a reader leaves both. */
const readOnlyDisk: Disk = {
  ...systemDisk,
  truncatePath: () => undefined,
  remove: () => undefined,
};

const PAGE_BYTES = 1024 * 1024;

export interface StoredJournal {
  readonly id: string;
  readonly owner: string;
  readonly name?: string;
  readonly state: 'closed' | 'lost';
  readonly journal: EndedJournal;
}

export function findStored(home: string, text: string, own: Owner): StoredJournal {
  const found = choose(storedJournals(join(home, 'journals')), text, own);
  if (found) return found;
  throw new HoldfastError('not_found', `There is no journal of a process "${text}" in ${home}.`, {
    id: text,
  });
}

export async function* storedPages(journal: EndedJournal): AsyncGenerator<{
  readonly missed: Missed | undefined;
  readonly events: Iterable<ProcessEvent>;
}> {
  for (let [after, offset] = [0, 0]; ;) {
    const page = await readPage(journal, { after, offset, maxBytes: PAGE_BYTES });
    if (page.nextAfter === after) return;
    yield { missed: page.missed, events: decodeRecords(page.records) };
    [after, offset] = [page.nextAfter, page.nextOffset];
  }
}

function storedJournals(folder: string): StoredJournal[] {
  let listed: Map<string, number[]>;
  try {
    listed = listJournals(folder);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return [];
    throw new HoldfastError(
      'storage_unavailable',
      `${folder} cannot be read: ${errnoOf(error) ?? String(error)}.`,
    );
  }
  return Array.from(listed, ([id, numbers]) =>
    stored(openJournal({ disk: readOnlyDisk, folder, id, numbers })),
  ).filter((journal) => journal !== undefined);
}

function stored(found: FoundJournal): StoredJournal | undefined {
  if (found.kind === 'empty') return undefined;
  const { segments, seq } = found;
  const finished = found.kind === 'finished';
  const facts = (finished ? found.closed['facts'] : found.started) as ProcessFacts;
  const offset = finished ? found.closed.bytes : found.offset;
  const journal = new EndedJournal(segments, { seq, offset, lostBytes: 0 });
  const { id, owner, name } = facts;
  return {
    id,
    owner,
    ...(name !== undefined && { name }),
    state: finished ? 'closed' : 'lost',
    journal,
  };
}
