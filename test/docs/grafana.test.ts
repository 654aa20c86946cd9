// The dashboard for Grafana asks only for what a server gives.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { serve } from '../support/coder-client.ts';
import { root } from '../support/command-line.ts';
import { NativeClient } from '../support/native-client.ts';

const page = 'docs/operations/metrics.md';
const dashboard = 'docs/operations/grafana-dashboard.json';

describe('the dashboard for Grafana', () => {
  it('[DOC5] can be read, and every metric in it and on its page is one of /metrics', async () => {
    const read = (name: string): string => readFileSync(join(root, name), 'utf8');
    const { panels } = JSON.parse(read(dashboard)) as {
      panels: { title: string; targets: { expr: string }[] }[];
    };
    expect(panels.filter(({ targets }) => targets.length === 0)).toEqual([]);
    const served = await serve();
    const text = (await NativeClient.of(served).get('/metrics')).bytes.toString();
    await served.stop();
    const given = new Set(Array.from(text.matchAll(/^# TYPE (\w+) /gm), ([, name]) => name));
    const asked = [...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)), read(page)]
      .flatMap((expression) => expression.match(/\bholdfast_\w+/g) ?? [])
      .map((name) => name.replace(/_(?:bucket|count|sum)$/, ''));
    expect(asked.length).toBeGreaterThan(20);
    expect([...new Set(asked)].filter((name) => !given.has(name))).toEqual([]);
  });
});
