// The figures at /metrics, from a real keeper and server.

import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { serve, type Served } from '../support/coder-client.ts';
import { NativeClient } from '../support/native-client.ts';

let served: Served;
let client: NativeClient;

beforeAll(async () => {
  served = await serve();
  client = NativeClient.of(served);
});
afterAll(() => served.stop());

async function figures(): Promise<string> {
  return (await client.get('/metrics')).bytes.toString();
}

/** The value of a sample; 0 where there is none yet. */
function value(text: string, sample: string): number {
  const line = text.split('\n').find((each) => each.startsWith(`${sample} `));
  return Number(line?.slice(sample.length + 1) ?? 0);
}

describe('the figures of a server', () => {
  it('[API65] starts, exits and waits are in histograms, endings by outcome, and journals and their disk have gauges', async () => {
    const before = await figures();
    const ids = await Promise.all(
      ['exit 0', 'exit 3', 'kill -9 $$'].map(async (command) => {
        const { id } = await client.start({ command });
        return id;
      }),
    );
    for (const id of ids) await client.post(`/v1/processes/${id}/wait`, {});
    const text = await figures();
    const grown = (sample: string): number => value(text, sample) - value(before, sample);
    for (const name of ['start_duration', 'exit_latency', 'wait_duration'])
      expect([name, grown(`holdfast_${name}_seconds_count`)]).toEqual([name, 3]);
    expect(grown('holdfast_processes_exited_total{outcome="exit"}')).toBe(2);
    expect(grown('holdfast_processes_exited_total{outcome="signal"}')).toBe(1);
    const buckets = text
      .split('\n')
      .filter((line) => line.startsWith('holdfast_start_duration_seconds_bucket'))
      .map((line) => Number(line.slice(line.lastIndexOf(' '))));
    expect(buckets).toEqual(buckets.toSorted((a, b) => a - b));
    expect(buckets.at(-1)).toBe(value(text, 'holdfast_start_duration_seconds_count'));
    expect(value(text, 'holdfast_start_duration_seconds_sum')).toBeGreaterThan(0);
    const route = 'route="POST /v1/processes"';
    expect(grown(`holdfast_request_duration_seconds_bucket{${route},le="+Inf"}`)).toBe(3);
    expect(value(text, 'holdfast_journal_limit_bytes')).toBeGreaterThan(0);
    const [free, size] = ['free', 'size'].map((each) => value(text, `holdfast_disk_${each}_bytes`));
    expect(free).toBeLessThanOrEqual(size ?? 0);
    // They are for Prometheus: a person who asks for the health gets what they had.
    expect(Object.keys((await client.get('/v1/health')).json)).not.toContain('measured');
  });

  const promtool = spawnSync('promtool', ['--version']).error === undefined;
  // Not installed by the set-up: the package also brings and starts a server.
  it.skipIf(!promtool)('[API65] promtool finds no fault in them (needs promtool)', async () => {
    await client.get('/v1/processes/nobody');
    const { stdout, stderr, status } = spawnSync('promtool', ['check', 'metrics'], {
      input: await figures(),
      encoding: 'utf8',
    });
    expect({ stdout, stderr, status }).toEqual({ stdout: '', stderr: '', status: 0 });
  });
});
