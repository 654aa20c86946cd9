// Finds the name that was probably meant by a mistyped one.

/** Undefined when none is near: at most one letter in three may be wrong, missing, too many or swapped. */
export function nearest(text: string, names: readonly string[]): string | undefined {
  const far = Math.max(1, Math.floor(text.length / 3));
  const ranked = names
    .filter((name) => Math.abs(name.length - text.length) <= far)
    .map((name) => ({ name, distance: distanceOf(text, name) }))
    .filter(({ distance }) => distance <= far)
    .sort((a, b) => a.distance - b.distance);
  return ranked[0]?.name ?? names.find((name) => text.length >= 3 && name.startsWith(text));
}

/** Damerau's distance, of neighbours swapped once. */
function distanceOf(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let row = 1; row <= a.length; row += 1) {
    const next = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const same = a[row - 1] === b[column - 1];
      let best = Math.min(
        (last[column] ?? 0) + 1,
        (next[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
      );
      const swapped =
        row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (swapped) best = Math.min(best, (before[column - 2] ?? 0) + 1);
      next.push(best);
    }
    [before, last] = [last, next];
  }
  return last[b.length] ?? 0;
}
