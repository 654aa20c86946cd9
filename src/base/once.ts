// A function that acts on its first call only.

export function once(action: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    action();
  };
}

/** Shares the promise of the first call. A failure is forgotten, so that the next call tries again. */
export function sharePromise<T>(make: () => Promise<T>): () => Promise<T> {
  let shared: Promise<T> | undefined;
  return () => {
    shared ??= make().catch((error: unknown) => {
      shared = undefined;
      throw error;
    });
    return shared;
  };
}
