// The ceilings of a token at a gateway, at the host that starts the process.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connect, type Holdfast } from '../../src/index.ts';
import { CodexClient } from '../support/codex-client.ts';
import { FleetPlace } from '../support/fleet-place.ts';
import { inProcess, onCleanup, OWNER, temporaryFolder } from '../support/hosts.ts';
import { hasNats, LEFT_OUT, sharedNats } from '../support/nats.ts';

const means = await (await inProcess()).enforcement(OWNER, {});
const hides = means.hidden.by === 'bubblewrap';
const PRINT = 'ulimit -n';

let place: FleetPlace;
let gateway: Awaited<ReturnType<FleetPlace['ready']>>;
beforeEach(async () => {
  place = new FleetPlace();
  const { url } = await sharedNats();
  gateway = await place.ready('gateway', url, '--name', 'g1');
  await place.ready('join', url, '--name', 'h1');
  await place.states({ h1: 'here' });
});
afterEach(() => place.close());

/** A token of alice in this home. */
async function tokenIn(home: string, ...ceilings: string[]): Promise<string> {
  const made = await place.run('token', 'create', '--for', 'alice', '--home', home, ...ceilings);
  expect(made.stderr).toBe('');
  return made.stdout.trim();
}

async function alice(token: string): Promise<Holdfast> {
  const client = await connect({ url: gateway.url, token });
  onCleanup(() => client.close());
  return client;
}

function codexOf(token: string): Promise<CodexClient> {
  return CodexClient.ready(`${gateway.url.replace('http', 'ws')}/codex?token=${token}`);
}

describe.skipIf(!hasNats)(`a token of a gateway${LEFT_OUT}`, () => {
  it('[FL86] its ceilings hold at the host, with those that the owner has there', async (test) => {
    test.skip(!hides, means.hidden.why);
    const token = await tokenIn(gateway.home, '--open-files', '100');
    const client = await alice(token);
    const printed = async (limits = {}): Promise<string> => {
      const { stdout } = await client.run(PRINT, { limits });
      return stdout.trim();
    };
    expect(await printed()).toBe('100');
    expect(await printed({ openFiles: 50 })).toBe('50');
    await expect(printed({ openFiles: 200 })).rejects.toMatchObject({ code: 'above_ceiling' });
    const codex = await codexOf(token);
    await codex.shell('p', PRINT);
    await codex.untilClosed('p');
    expect(codex.output('p').trim()).toBe('100');
    await tokenIn(place.home, '--open-files', '64');
    expect(await printed()).toBe('64');
    await expect(printed({ openFiles: 80 })).rejects.toMatchObject({ code: 'above_ceiling' });
    await tokenIn(place.home, '--open-files', '300');
    expect(await printed()).toBe('64');
  });

  it('[FL86] its sandbox holds for commands, and for the files of codex', async (test) => {
    test.skip(!hides, means.hidden.why);
    const token = await tokenIn(gateway.home, '--sandbox', 'read-only');
    const client = await alice(token);
    const file = join(temporaryFolder(), 'file');
    expect((await client.run(`echo > ${file}`)).exitCode).not.toBe(0);
    const asked = client.start('true', { sandbox: { fs: { write: ['/tmp'] } } });
    await expect(asked).rejects.toMatchObject({ code: 'above_ceiling' });
    const codex = await codexOf(token);
    const dataBase64 = Buffer.from('x').toString('base64');
    const written = codex.call('fs/writeFile', { path: pathToFileURL(file).href, dataBase64 });
    await expect(written).rejects.toThrow(/allow|permi|read-only|writ|token/i);
    expect(existsSync(file)).toBe(false);
  });
});
