// What a run printed itself: all of it, or its end and how much stands before that.

import { stripAnsi } from '../base/bytes/ansi.ts';
import type { HostApi, Owner } from '../protocol/host-api.ts';
import type { RunResult } from '../protocol/run.ts';

export interface RunOutput {
  readonly output: string;
  /** Absent when the output is whole. */
  readonly truncated?: { readonly omittedBytes: number; readonly totalBytes: number };
}

/** How much of a run's own output its answer carries. */
const RUN_OUTPUT_BYTES = 64 * 1024;
const LINE_FEED = 10;

/** Undefined where nobody told which output it was. */
export async function runOutput(
  host: HostApi,
  owner: Owner,
  id: string,
  { completion, outputFrom, outputTo }: RunResult,
): Promise<RunOutput | undefined> {
  if (completion === 'unknown' || outputFrom === undefined || outputTo === undefined)
    return undefined;
  const totalBytes = outputTo - outputFrom;
  if (totalBytes <= 0) return { output: '' };
  const maxBytes = Math.min(totalBytes, RUN_OUTPUT_BYTES);
  const found = await host.range(owner, { id, offset: outputTo - maxBytes, maxBytes });
  let bytes = found.bytes.subarray(0, Math.max(0, outputTo - found.offset));
  // What is cut begins with a whole line, where there is one.
  if (bytes.length < totalBytes) bytes = bytes.subarray(bytes.indexOf(LINE_FEED) + 1);
  const omittedBytes = totalBytes - bytes.length;
  const text = stripAnsi(bytes.toString('utf8')).replaceAll('\r\n', '\n');
  return {
    // A line editor goes to the first column once more before the command begins.
    output: completion === 'sentinel' ? text.replace(/^\r+/, '') : text,
    ...(omittedBytes > 0 && { truncated: { omittedBytes, totalBytes } }),
  };
}
