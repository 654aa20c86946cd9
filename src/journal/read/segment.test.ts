import { describe, expect, it } from 'vitest';
import { failure } from '../../../test/support/hosts.ts';
import { makeJournal, outputOf, readAll } from '../../../test/support/journals.ts';
import { MemoryDisk } from '../../../test/support/memory-disk.ts';

/** Refuses to open anything for reading while it has a reason. */
class SilentDisk extends MemoryDisk {
  refusal: string | undefined;

  override openRead(path: string): number {
    const { refusal: code } = this;
    if (code !== undefined) throw Object.assign(new Error(`${code}: refused`), { code });
    return super.openRead(path);
  }
}

describe('a journal that the disk does not give back', () => {
  for (const [errno, code] of [
    ['EIO', 'storage_unavailable'],
    ['EACCES', 'storage_unavailable'],
    ['EMFILE', 'too_many_files'],
    ['ENFILE', 'too_many_files'],
    ['ENOMEM', 'no_memory'],
  ] as const) {
    it(`[X11] is refused with ${code} after ${errno}, and read afterwards`, async () => {
      const disk = new SilentDisk();
      const { journal } = makeJournal({ disk });
      journal.output('stdout', Buffer.from('kept'));
      await journal.visible();
      disk.refusal = errno;
      const refused = await failure(readAll(journal));
      expect(refused).toMatchObject({ code, message: expect.stringContaining(errno) as string });
      disk.refusal = undefined;
      expect(outputOf((await readAll(journal)).events).toString()).toBe('kept');
    });
  }
});
