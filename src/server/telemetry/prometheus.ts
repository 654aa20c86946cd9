// Measured values in the text format of Prometheus.

import type { HistogramFigures } from '../../base/observe/histogram.ts';
import type { Family, Sample } from './metrics.ts';

type Labels = NonNullable<Sample['labels']>;

export function prometheusText(families: readonly Family[]): string {
  return families.map(familyText).join('');
}

function familyText({ name, help, type, samples }: Family): string {
  const full = `holdfast_${name}`;
  const lines = samples.flatMap(({ labels = {}, value }) =>
    typeof value === 'number' ? [line(full, labels, value)] : histogramLines(full, labels, value),
  );
  return [`# HELP ${full} ${help}`, `# TYPE ${full} ${type}`, ...lines, ''].join('\n');
}

/** Each bucket counts everything up to its bound. */
function histogramLines(
  name: string,
  labels: Labels,
  { bounds, counts, seconds }: HistogramFigures,
): string[] {
  let count = 0;
  const buckets = counts.map((each, at) => {
    count += each;
    return line(`${name}_bucket`, { ...labels, le: String(bounds[at] ?? '+Inf') }, count);
  });
  return [...buckets, line(`${name}_sum`, labels, seconds), line(`${name}_count`, labels, count)];
}

function line(name: string, labels: Labels, value: number): string {
  const inside = Object.entries(labels).map(([label, text]) => `${label}="${text}"`);
  return `${name}${inside.length > 0 ? `{${inside.join(',')}}` : ''} ${value}`;
}
