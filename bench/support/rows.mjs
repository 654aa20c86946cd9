// Rows of the result table: a figure and its bar.

export const KiB = 1024;
export const MiB = 1024 * KiB;

const units = {
  times: (value) => `${value.toFixed(2)} ×`,
  ms: (value) => `${value < 10 ? value.toFixed(2) : value.toFixed(0)} ms`,
  bytes: (value) => (Math.abs(value) < MiB / 2 ? `${(value / KiB).toFixed(2)} KiB` : `${(value / MiB).toFixed(1)} MiB`),
  perSecond: (value) => `${value.toFixed(0)} /s`,
  rate: (value) => `${(value / 1e6).toFixed(0)} MB/s`,
  count: (value) => `${Math.round(value)}`,
};

function row(what, value, unit, { bar, passed, note = '' }) {
  return { what, value, unit, measured: units[unit](value), bar, passed, note };
}

export function atMost(what, value, unit, most, note) {
  return row(what, value, unit, { bar: `at most ${units[unit](most)}`, passed: value <= most, note });
}

export function under(what, value, unit, limit, note) {
  return row(what, value, unit, { bar: `under ${units[unit](limit)}`, passed: value < limit, note });
}

export function atLeast(what, value, unit, least, note) {
  return row(what, value, unit, { bar: `at least ${units[unit](least)}`, passed: value >= least, note });
}

/** Without a bar: for the reader. */
export function told(what, value, unit, note) {
  return row(what, value, unit, { bar: '', passed: undefined, note });
}

export function table(rows) {
  const cells = rows.map(({ figure, what, measured, bar, passed, note }) => [
    figure,
    what,
    measured,
    bar,
    passed === undefined ? '' : passed ? 'pass' : 'FAIL',
    note,
  ]);
  const all = [['figure', 'what', 'measured', 'bar', '', 'note'], ...cells];
  const widths = all[0].map((_, column) => Math.max(...all.map((line) => line[column].length)));
  const line = (parts) => parts.map((part, column) => part.padEnd(widths[column])).join('  ').trimEnd();
  return [line(all[0]), widths.map((width) => '-'.repeat(width)).join('  '), ...all.slice(1).map(line)].join('\n');
}
