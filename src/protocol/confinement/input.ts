// The part of a start that says what the process may use and touch.

import * as v from 'valibot';
import type { OwnerPolicy } from './confinement.ts';
import { optional } from '../schema/described.ts';
import { shortText, text } from '../schema/fields.ts';

const atLeast = (least: number) =>
  v.pipe(v.number(), v.integer(), v.minValue(least), v.maxValue(Number.MAX_SAFE_INTEGER));
/** Less does not hold a shell. */
const LEAST_MEMORY_BYTES = 1024 * 1024;
const MOST_PATHS = 256;
const paths = v.pipe(v.array(v.pipe(text, v.minLength(1))), v.maxLength(MOST_PATHS));

export const limits = v.strictObject({
  memory: optional('Bytes of memory, all its processes together.', atLeast(LEAST_MEMORY_BYTES)),
  pids: optional('Processes at the same time.', atLeast(1)),
  cpus: optional('Processors: 1.5 is one and a half.', v.pipe(v.number(), v.minValue(0.01))),
  cpuSeconds: optional('Seconds of processor time of each process.', atLeast(1)),
  fileBytes: optional('Size of the largest file that a process can write.', atLeast(1)),
  openFiles: optional('Open files of each process.', atLeast(8)),
});

const filePolicy = v.strictObject({
  write: paths,
  hide: v.optional(paths),
  /** If given, only these can be read. */
  read: v.optional(paths),
});

const sandbox = v.strictObject({
  fs: optional(
    'open, read-only, or {write, hide, read}: read-only except "write", without "hide"; with "read" only these are visible.',
    v.union([v.picklist(['open', 'read-only']), filePolicy]),
  ),
  net: optional('none: no network.', v.picklist(['open', 'none'])),
  privileges: optional('drop: setuid programs gain nothing.', v.picklist(['keep', 'drop'])),
  user: optional('Run as this user. The host must be root.', shortText),
});

/** The fields of a start. */
export const confinement = {
  limits: optional('Limits of memory, processes and processor time.', limits),
  sandbox: optional('What the process may touch.', sandbox),
  enforce: optional(
    'What cannot be enforced here: refuse the start (default), or start it and say what is missing (best).',
    v.picklist(['refuse', 'best']),
  ),
};

/** What the tokens of an owner allow its processes. */
export const ceiling: v.GenericSchema<OwnerPolicy> = v.object({
  level: v.picklist(['hidden', 'none']),
  ...confinement,
});
