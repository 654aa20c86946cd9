// Time: a monotonic clock for durations and order, a wall clock for labels, and timers. Passed in,
// so that tests can hold the hands.

export interface Clock {
  /** Monotonic microseconds from an arbitrary origin. */
  nowUs(): number;
  wallMs(): number;
  /** Calls back once after `ms`; the answer cancels it. Never keeps the program alive by itself. */
  after(ms: number, callback: () => void): () => void;
}

/** Node fires a longer timer at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  nowUs: () => Math.round(performance.now() * 1000),
  wallMs: () => Date.now(),
  after(ms, callback) {
    let timer = setTimeout(fire, Math.min(ms, LONGEST_TIMER_MS), ms).unref();
    function fire(left: number): void {
      const rest = left - LONGEST_TIMER_MS;
      if (rest > 0) timer = setTimeout(fire, Math.min(rest, LONGEST_TIMER_MS), rest).unref();
      else callback();
    }
    return () => clearTimeout(timer);
  },
};
