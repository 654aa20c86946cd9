// Doing something once, however often it is asked for.

/** Done by the first call only. */
export function once(action: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    action();
  };
}
