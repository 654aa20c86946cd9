// The program of a worker thread, read before it is needed: a new version may have taken the place of its file by then.
// The build puts everything of ours that a worker imports into its one file.

import { readFileSync } from 'node:fs';

/** Of threads that draw and emulate, as `nice` counts: answering callers goes first. */
export const WORKER_PRIORITY = 5;

/** What a `Worker` takes. `file`: the built one. Inside, `import.meta.url` is this file's. */
export function workerProgram(file: URL): URL {
  const place = `globalThis.holdfastModule = ${JSON.stringify(file.href)};\n`;
  const source = Buffer.from(place + readFileSync(file, 'utf8'));
  return new URL(`data:text/javascript;base64,${source.toString('base64')}`);
}
