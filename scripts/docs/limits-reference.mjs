// The limits as Markdown: values from the built program, reasons from the comments beside them.
import { cell } from './cell.mjs';

const COMMENT = /\/\*\*((?:(?!\*\/)[^])*)\*\/\s*(?:export const )?(\w+)(?:: | = )/g;

export function limitsReference(limits, source) {
  const reasons = new Map(
    Array.from(source.matchAll(COMMENT), ([, text, name]) => [
      name,
      text.replaceAll(/\s*\n\s*\* ?/g, ' ').trim(),
    ]),
  );
  const row = ([name, value]) =>
    `| \`${name}\` | ${sized(name, value)} | ${cell(reasons.get(name) ?? '')} |`;
  const table = (rows) => `| name | value | |\n| --- | --- | --- |\n${rows.map(row).join('\n')}`;
  const fixed = Object.entries(limits).filter(([, value]) => typeof value === 'number');
  return [
    '## Limits that can be set',
    'With `HOLDFAST_LIMITS` for a new keeper, or `limits` of `embed`.',
    table(Object.entries(limits.defaultLimits)),
    '## Limits that are fixed',
    table(fixed),
  ].join('\n\n');
}

function sized(name, value) {
  if (/bytes$/i.test(name) && value >= 1024) return inUnits(value, 1024, ['KiB', 'MiB', 'GiB']);
  if (/ms$/i.test(name)) return inTime(value);
  return value.toLocaleString('en');
}

function inUnits(value, step, units) {
  let [left, at] = [value / step, 0];
  while (left >= step && at < units.length - 1) [left, at] = [left / step, at + 1];
  return `${Number(left.toFixed(1))} ${units[at]}`;
}

function inTime(ms) {
  for (const [unit, size] of [
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1000],
  ])
    if (ms >= size && ms % size === 0) return `${ms / size} ${unit}`;
  return `${ms} ms`;
}
