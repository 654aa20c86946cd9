// Time: a monotonic clock for durations and order, a wall clock for labels, and timers. Injected, so that tests can
// control it.

export interface Clock {
  /** Monotonic microseconds from an arbitrary origin. */
  nowUs(): number;
  wallMs(): number;
  /** Calls back once after `ms` and returns a function that cancels. The timer does not keep the program alive. */
  after(ms: number, callback: () => void): () => void;
}

/** Node fires a timer with a longer delay immediately. */
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
