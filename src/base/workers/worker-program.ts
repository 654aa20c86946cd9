// The program of a worker thread, read early: an update may replace its file before the thread starts. The build bundles
// a worker's imports into one file.

import { readFileSync } from 'node:fs';

/** Nice value of threads that draw and emulate: answering callers has priority. */
export const WORKER_PRIORITY = 5;

/** A URL for `new Worker`, made from a built file. The program finds its own URL in `holdfastModule`. */
export function workerProgram(file: URL): URL {
  const place = `globalThis.holdfastModule = ${JSON.stringify(file.href)};\n`;
  const source = Buffer.from(place + readFileSync(file, 'utf8'));
  return new URL(`data:text/javascript;base64,${source.toString('base64')}`);
}
