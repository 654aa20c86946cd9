// Rows of the result table: a figure, and its bar if it has one.

export const KiB = 1024;
export const MiB = 1024 * KiB;

const units = {
  times: (value) => (Number.isNaN(value) ? 'refused' : `${value.toFixed(2)} ×`),
  ms: (value) => `${value < 10 ? value.toFixed(2) : value.toFixed(0)} ms`,
  bytes: (value) =>
    Math.abs(value) < MiB / 2
      ? `${(value / KiB).toFixed(2)} KiB`
      : `${(value / MiB).toFixed(1)} MiB`,
  megabytes: (value) => `${value.toFixed(1)} MB`,
  perSecond: (value) => `${value.toFixed(0)} /s`,
  rate: (value) => `${(value / 1e6).toFixed(0)} MB/s`,
  rarely: (value) => `${value.toFixed(2)} /s`,
  count: (value) => `${Math.round(value)}`,
};

const bars = {
  atMost: { word: 'at most', holds: (value, bar) => value <= bar },
  atLeast: { word: 'at least', holds: (value, bar) => value >= bar },
  under: { word: 'under', holds: (value, bar) => value < bar },
};

/** With one of `atMost`, `atLeast` and `under`, or with none: then it is only told. */
export function row({ what, value, unit, note = '', ...given }) {
  const measured = units[unit](value);
  const [name] = Object.keys(given);
  if (name === undefined) return { what, value, unit, measured, bar: '', note };
  const bar = `${bars[name].word} ${units[unit](given[name])}`;
  return { what, value, unit, measured, bar, passed: bars[name].holds(value, given[name]), note };
}

export function missed(rows) {
  return rows.filter(({ passed }) => passed === false).length;
}

export function table(rows) {
  const verdicts = new Map([
    [true, 'pass'],
    [false, 'FAIL'],
  ]);
  const cells = rows.map(({ figure, what, measured, bar, passed, note }) => [
    figure,
    what,
    measured,
    bar,
    verdicts.get(passed) ?? '',
    note,
  ]);
  const head = ['figure', 'what', 'measured', 'bar', '', 'note'];
  const widths = head.map((_, column) =>
    Math.max(...[head, ...cells].map((line) => line[column].length)),
  );
  const line = (parts) =>
    parts
      .map((part, column) => part.padEnd(widths[column]))
      .join('  ')
      .trimEnd();
  const rule = widths.map((width) => '-'.repeat(width)).join('  ');
  return [line(head), rule, ...cells.map(line)].join('\n');
}
