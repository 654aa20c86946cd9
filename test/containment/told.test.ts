// What a process has cost and what its limits did is told everywhere: to a program, to a person and to a model.

import { describe, expect, it } from 'vitest';
import { Toolbox } from '../../src/tools/toolbox.ts';
import { Place } from '../support/command-line.ts';
import { inProcess, onCleanup, OWNER, waitFor } from '../support/hosts.ts';
import { apiOver } from '../support/in-process-api.ts';

/** More than a second of processor time: less is not worth a word to a model or a person. */
const BURN = `perl -e '1 while (times)[0] < 1.1'`;

describe('the cost of a process', () => {
  it('[CT37] is in its description, its completion and the answer to a model', async () => {
    const host = await inProcess();
    const box = new Toolbox({ connection: apiOver(host, OWNER) });
    const call = async (command: string): Promise<Record<string, unknown>> => {
      const answer = await box.call('execute', { command, timeout: '60s' });
      if (answer.isError) throw new Error(answer.text);
      return answer.result;
    };
    const result = await call(BURN);
    expect(result).toMatchObject({ note: expect.stringMatching(/used .*s of processor time/) });
    const { process_id: id } = result as { process_id: string };
    await waitFor(host, id, { kind: 'settled' });
    const { usage } = await host.get(OWNER, { id });
    expect((usage?.userMs ?? 0) + (usage?.systemMs ?? 0)).toBeGreaterThanOrEqual(1000);
    const { completions } = await host.completions(OWNER, { waitMs: 60_000 });
    expect(completions[0]?.usage?.by).toBe(usage?.by);
    expect((await call('true'))['note']).toBeUndefined();
  });

  it('[CT37] is in the list of processes on a terminal', async () => {
    const place = new Place();
    onCleanup(() => place.close());
    await place.run('run', BURN);
    const { shown } = await place.onTerminal('ps', '--all');
    const [heading = '', line = ''] = shown.trimEnd().split('\r\n');
    expect(heading).toMatch(/ BYTES +CPU +COMMAND$/);
    expect(line).toMatch(/ exit 0 +0 B +\d\S*s +perl/);
  });
});
