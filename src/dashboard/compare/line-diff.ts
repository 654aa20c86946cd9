// The difference between two short lists of lines: the longest common subsequence, in rows for two columns.

export interface DiffRow {
  readonly left?: string;
  readonly right?: string;
  readonly isSame: boolean;
}

export function diffLines(left: readonly string[], right: readonly string[]): DiffRow[] {
  const width = right.length + 1;
  // Length of the longest common subsequence of what follows each pair of places.
  const lengths = new Uint16Array((left.length + 1) * width);
  const at = (row: number, col: number): number => lengths[row * width + col] ?? 0;
  for (let row = left.length - 1; row >= 0; row -= 1)
    for (let col = right.length - 1; col >= 0; col -= 1)
      lengths[row * width + col] =
        left[row] === right[col]
          ? at(row + 1, col + 1) + 1
          : Math.max(at(row + 1, col), at(row, col + 1));
  const rows: DiffRow[] = [];
  const gone: string[] = [];
  const come: string[] = [];
  const flush = (): void => {
    for (let index = 0; index < Math.max(gone.length, come.length); index += 1) {
      const [one, other] = [gone[index], come[index]];
      rows.push({
        isSame: false,
        ...(one !== undefined && { left: one }),
        ...(other !== undefined && { right: other }),
      });
    }
    gone.length = 0;
    come.length = 0;
  };
  let [row, col] = [0, 0];
  while (row < left.length || col < right.length) {
    const [one, other] = [left[row], right[col]];
    if (one !== undefined && one === other) {
      flush();
      rows.push({ left: one, right: one, isSame: true });
      row += 1;
      col += 1;
    } else if (one !== undefined && (other === undefined || at(row + 1, col) >= at(row, col + 1))) {
      gone.push(one);
      row += 1;
    } else {
      come.push(other ?? '');
      col += 1;
    }
  }
  flush();
  return rows;
}
