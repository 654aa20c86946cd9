// The output of one run: all of it, or its end with the size of the rest.

import { stripAnsi } from '../base/bytes/ansi.ts';
import type { HostApi, Owner } from '../protocol/host-api.ts';
import type { RunResult } from '../protocol/run.ts';
import type { TerminalRun } from '../client/terminal-api.ts';

export type RunOutput = Required<Pick<TerminalRun, 'output'>> & Pick<TerminalRun, 'truncated'>;

/** How much of a run's output its answer contains. */
const RUN_OUTPUT_BYTES = 64 * 1024;
const LINE_FEED = 10;

/** Undefined if it is unknown which output belongs to the run. */
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
  // A truncated output begins with a whole line, if there is one.
  if (bytes.length < totalBytes) bytes = bytes.subarray(bytes.indexOf(LINE_FEED) + 1);
  const omittedBytes = totalBytes - bytes.length;
  const text = stripAnsi(bytes.toString('utf8')).replaceAll('\r\n', '\n');
  return {
    // A line editor sends a carriage return before the command begins.
    output: completion === 'sentinel' ? text.replace(/^\r+/, '') : text,
    ...(omittedBytes > 0 && { truncated: { omittedBytes, totalBytes } }),
  };
}
