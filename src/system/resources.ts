// What processes use: this one's memory, what /proc says of others now, and what wait4 reports of children that have ended.

import { readFileSync } from 'node:fs';

/** In bytes. Without a free descriptor /proc cannot be read; then the peak. */
export function residentBytes(): number {
  try {
    return process.memoryUsage.rss();
  } catch {
    return process.resourceUsage().maxRSS * 1024;
  }
}

const PAGE_BYTES = 4096;
const TICK_MS = 10;

/** Resident memory of a process; 0 if it has ended. Never waits for the process. */
export function residentBytesOf(pid: number): number {
  return Number(procText(pid, 'statm').split(' ')[1] ?? 0) * PAGE_BYTES;
}

/** Processor time that a process has used, without its children; 0 if it has ended. */
export function cpuMsOf(pid: number): number {
  const text = procText(pid, 'stat');
  // The name, in parentheses, may contain blanks.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * TICK_MS;
}

/** Empty if it has ended, or if no descriptor is free. */
function procText(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return '';
  }
}

/** By a process that has ended, and by all its descendants that were waited for. */
export interface Used {
  readonly userUs: number;
  readonly systemUs: number;
  /** The largest resident size of one of these processes. */
  readonly peakBytes: number;
  /** From and to storage, not from and to the page cache. */
  readonly readBytes: number;
  readonly writtenBytes: number;
}

/** struct rusage: 18 words of 64 bits. */
export const RUSAGE_WORDS = 18;
const BLOCK_BYTES = 512;

export function decodeUsage(words: BigInt64Array): Used {
  const word = (index: number): number => Number(words[index] ?? 0n);
  return {
    userUs: word(0) * 1e6 + word(1),
    systemUs: word(2) * 1e6 + word(3),
    peakBytes: word(4) * 1024,
    readBytes: word(11) * BLOCK_BYTES,
    writtenBytes: word(12) * BLOCK_BYTES,
  };
}

/**
 * The least peak that says something. posix_spawn's child shares our memory until it has its program, and Linux counts that:
 * no child has a smaller peak than we have had.
 */
export function ownPeakBytes(): number {
  return process.resourceUsage().maxRSS * 1024;
}
