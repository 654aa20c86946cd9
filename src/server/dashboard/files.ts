// The files of the dashboard as the build made them. They are read once, soon after the start of the server: a page that
// is open then works on when an update replaces the files.

import { readdir, readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { builtFile } from '../../base/workers/built-file.ts';
import { errnoOf } from '../../base/disk.ts';
import { HoldfastError } from '../../protocol/errors.ts';

interface Asset {
  readonly media: string;
  readonly gzip: Buffer;
}

export interface DashboardFiles {
  /** With a place for the nonce of its styles. */
  readonly page: string;
  /** By the name behind /assets/. */
  readonly assets: ReadonlyMap<string, Asset>;
}

const MEDIA: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.woff2': 'font/woff2',
  '.txt': 'text/plain; charset=utf-8',
};

let loading: Promise<DashboardFiles> | undefined;

/** Read by the first caller, kept for all. A folder that cannot be read is tried again by the next caller. */
export function loadDashboard(): Promise<DashboardFiles> {
  loading ??= readFiles(fileURLToPath(builtFile(import.meta.url, '../../dashboard/'))).catch(
    (error: unknown) => {
      loading = undefined;
      if (errnoOf(error) !== 'ENOENT') throw error;
      const problem = 'This installation has no dashboard: its files were not built.';
      throw new HoldfastError('no_route', problem, { remedy: 'Run "npm run setup" in the clone.' });
    },
  );
  return loading;
}

async function readFiles(folder: string): Promise<DashboardFiles> {
  const page = await readFile(`${folder}/index.html`, 'utf8');
  const assets = new Map<string, Asset>();
  for (const file of await readdir(`${folder}/assets`)) {
    const name = file.replace(/\.gz$/, '');
    const media = MEDIA[extname(name)];
    if (name === file || media === undefined) continue;
    assets.set(name, { media, gzip: await readFile(`${folder}/assets/${file}`) });
  }
  return { page, assets };
}
