// A server in front of a home that has seen much serves the same as before.
import { describe, expect, it } from 'vitest';
import { serve, type Served } from '../support/coder-client.ts';
import { inProcess, onCleanup, stopKeeper, temporaryFolder } from '../support/hosts.ts';
import { NativeClient } from '../support/native-client.ts';
import { sized } from '../support/slow.ts';

const ENDED = sized(200, 1000);

async function ended(folder: string): Promise<void> {
  const host = await inProcess({ folder });
  let left = ENDED;
  const lane = async (): Promise<void> => {
    for (let number = left--; number > 0; number = left--) {
      const key = `key-${number}`;
      const { process } = await host.start('chat-1', { command: `echo ${number}`, key });
      await host.wait('chat-1', { waits: [{ id: process.id, for: [{ kind: 'closed' }] }] });
    }
  };
  await Promise.all(Array.from({ length: 8 }, lane));
  await host.close();
}

async function restarted(home: string): Promise<{ total: number; served: Served }> {
  const served = await serve({ home });
  const { json } = await NativeClient.of(served).get('/v1/processes?limit=1');
  return { total: (json as { total: number }).total, served };
}

describe('a restart', () => {
  it(`[SV19] with ${ENDED} ended processes on disk knows them all, keeper included`, async () => {
    const home = temporaryFolder();
    onCleanup(() => stopKeeper(home));
    await ended(home);
    const first = await restarted(home);
    await first.served.server.close();
    const second = await restarted(home);
    expect([first.total, second.total]).toEqual([ENDED, ENDED]);
    const client = NativeClient.of(second.served).with({ 'holdfast-owner': 'chat-1' });
    const again = await client.post('/v1/processes', { command: 'echo 7', key: 'key-7' });
    expect(again.json).toMatchObject({ attached: true });
    const { completions } = (await client.get('/v1/completions?limit=1000')).json as {
      completions: unknown[];
    };
    expect(completions).toHaveLength(ENDED);
    await second.served.server.close();
    await stopKeeper(home);
  });
});
