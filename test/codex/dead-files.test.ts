// Filesystem methods on a file system that does not answer.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { AnsweringMounts } from '../../src/server/codex/fs/answering-mounts.ts';
import { bytePath } from '../../src/server/codex/fs/uri.ts';
import { CodexClient, serveCodex } from '../support/codex-client.ts';
import { canMount, deadMount } from '../support/dead-mount.ts';
import { onCleanup, temporaryFolder } from '../support/hosts.ts';

const uri = (path: string): string => pathToFileURL(path).href;

it.skipIf(!canMount())(
  '[E9] a file system that does not answer is refused in time, and meanwhile other files are read',
  async () => {
    const dead = await deadMount();
    const { served, url } = await serveCodex();
    onCleanup(() => served.stop());
    const [mallory, alice] = [await CodexClient.ready(url), await CodexClient.ready(url)];
    const file = join(temporaryFolder(), 'file');
    writeFileSync(file, 'words');
    const methods = ['readFile', 'getMetadata', 'readDirectory', 'canonicalize', 'walk', 'remove'];
    const hanging = methods.flatMap((method) =>
      Array.from({ length: 2 }, (_, n) =>
        mallory.ask(`fs/${method}`, {
          path: uri(join(dead, `${n}`)),
          options: {
            maxDepth: 2,
            maxDirectories: 9,
            maxEntries: 9,
            followDirectorySymlinks: false,
          },
          sandbox: null,
        }),
      ),
    );
    for (let turn = 0; turn < 20; turn += 1)
      expect(await alice.ask('fs/readFile', { path: uri(file), sandbox: null })).toMatchObject({
        result: { dataBase64: Buffer.from('words').toString('base64') },
      });
    for (const [at, answer] of (await Promise.all(hanging)).entries())
      expect([methods[at >> 1], answer]).toMatchObject([
        methods[at >> 1],
        { error: { message: 'Connection timed out (os error 110)' } },
      ]);
  },
);

it.skipIf(!canMount())(
  '[E9] one helper asks for each file system; while it hangs, further callers are refused at once',
  async () => {
    const dead = await deadMount();
    const mounts = new AnsweringMounts(systemClock, { answerMs: 100 });
    const paths = ['', '/a', '/b/c'].map((name) => bytePath(`${dead}${name}`));
    const refused = { code: 'ETIMEDOUT' };
    await Promise.all(
      paths.map((path) => expect(mounts.check(path)).rejects.toMatchObject(refused)),
    );
    await expect(mounts.check(paths[1]!)).rejects.toMatchObject(refused);
    await mounts.check(bytePath(temporaryFolder()));
    await mounts.check(bytePath('/proc/uptime'));
  },
);
