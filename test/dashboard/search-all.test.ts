// The search over all processes: over HTTP, in the SDK and on the command line.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SearchAllLine } from '../../src/protocol/dashboard/search-all.ts';
import { connect } from '../../src/index.ts';
import { serve, type Served } from '../support/coder-client.ts';
import { Place } from '../support/command-line.ts';
import { onCleanup } from '../support/hosts.ts';
import { NativeClient } from '../support/native-client.ts';

describe('the search over all processes', () => {
  let served: Served;
  let client: NativeClient;
  const ids: string[] = [];
  beforeAll(async () => {
    served = await serve();
    client = NativeClient.of(served);
    for (let number = 0; number < 5; number += 1)
      ids.unshift(
        await client.run({
          command: `echo "Needle ${number}"; echo other; echo needle`,
          name: `n${number % 2}`,
        }),
      );
  });
  afterAll(() => served.stop());

  async function search(query: string, token = served.token): Promise<SearchAllLine[]> {
    const response = await fetch(`${served.server.url}/v1/search?${query}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const text = await response.text();
    return text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as SearchAllLine);
  }

  const found = (lines: readonly SearchAllLine[]): [string, number][] =>
    lines.flatMap((line) => (line.type === 'hits' ? [[line.process.id, line.hits.length]] : []));

  it('[DB20] begins with the newest process and ends with what was searched', async () => {
    const lines = await search('pattern=needle&kind=text&ignoreCase=true');
    expect(found(lines)).toEqual(ids.map((id) => [id, 2]));
    expect(lines.at(-1)).toEqual({ type: 'end', searched: 5, total: 5 });
    expect(found(await search('pattern=Needle&name=n1')).length).toBe(2);
    expect(found(await search('pattern=nothing-of-this'))).toEqual([]);
  });

  it('[DB20] is bounded in all and for each process, and continues where it ended', async () => {
    const first = await search('pattern=(?:n|N)eedle&limit=3&perProcess=1');
    expect(found(first)).toEqual(ids.slice(0, 3).map((id) => [id, 1]));
    const end = first.at(-1);
    const next = end?.type === 'end' ? end.next : undefined;
    const second = await search(`pattern=(?:n|N)eedle&perProcess=1&before=${next}`);
    expect(found(second)).toEqual(ids.slice(3).map((id) => [id, 1]));
    expect(second.at(-1)).toMatchObject({ type: 'end', searched: 2 });
    const all = await search('pattern=needle&ignoreCase=true&limit=4&state=closed&context=1');
    expect(found(all)).toEqual(ids.slice(0, 2).map((id) => [id, 2]));
  });

  it('[DB20] finds nothing of other owners, and refuses a pattern that is none', async () => {
    const { token } = served.tokens.create('chat:other');
    expect(await search('pattern=needle', token)).toEqual([{ type: 'end', searched: 0, total: 0 }]);
    expect((await client.get('/v1/search?pattern=(')).status).toBe(400);
  });

  it('[DB20] is in the SDK', async () => {
    const holdfast = await connect({ url: served.server.url, token: served.token });
    onCleanup(() => holdfast.close());
    const lines: SearchAllLine[] = [];
    for await (const line of holdfast.searchAll({ pattern: '^needle$' })) lines.push(line);
    expect(found(lines)).toEqual(ids.map((id) => [id, 1]));
  });
});

it('[DB20] holdfast search --all names the process of each hit', async () => {
  const place = new Place();
  onCleanup(() => place.close());
  expect(await place.run('search', '--all', 'x')).toMatchObject({ code: 1 });
  await place.finished('--name', 'older', 'echo found it');
  await place.finished('--name', 'newer', 'echo; echo found this');
  const { stdout, code } = await place.run('search', '--all', 'found');
  expect([stdout, code]).toEqual([
    expect.stringMatching(/^newer @\d+:found this\nolder @0:found it\n$/),
    0,
  ]);
  expect(await place.json('search', '--all', 'it$')).toMatchObject({
    result: { found: [{ process: { name: 'older' } }], truncated: false },
  });
});
