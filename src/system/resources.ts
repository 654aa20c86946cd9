// What processes use: this one's memory, and what wait4 reports of children that have ended.

/** In bytes. Without a free descriptor /proc cannot be read; then the peak. */
export function residentBytes(): number {
  try {
    return process.memoryUsage.rss();
  } catch {
    return process.resourceUsage().maxRSS * 1024;
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
