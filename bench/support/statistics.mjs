// Numbers from samples.

export function percentile(samples, share) {
  const sorted = Float64Array.from(samples).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

export function median(samples) {
  return percentile(samples, 0.5);
}

/** Milliseconds on the clock that every process of the machine shares (CLOCK_MONOTONIC). */
export function nowMs() {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** How long `work` took, in milliseconds. */
export async function timed(work) {
  const began = nowMs();
  await work();
  return nowMs() - began;
}

/** Calls `work` with 0 … count-1, so many of them under way at once. */
export async function inFlight(count, atOnce, work) {
  let next = 0;
  const lane = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
}
