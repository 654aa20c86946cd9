// The memory that this program occupies.

/** In bytes. Without a free descriptor /proc cannot be read; then the peak. */
export function residentBytes(): number {
  try {
    return process.memoryUsage.rss();
  } catch {
    return process.resourceUsage().maxRSS * 1024;
  }
}
