// A server that has just begun, with the clients that people have: the first hundred, on a server of its own for each
// client, and Node alone in turns. The client itself has been in use for a while.

import { coderClient, fetchClient, sdkClient } from './support/clients.mjs';
import { openServer } from './support/server.mjs';
import { row } from './support/rows.mjs';
import { inTurns, ofOther, rawSpawn } from './support/turns.mjs';

const FIRST = 100;
/** On another server, before it counts. */
const CLIENT_WARM_UP = 300;
const SERVERS = 3;

const clients = {
  'coder start + wait, node:http': { open: coderClient, bar: { atMost: 1.2 } },
  'native start with its end in one request, fetch': { open: fetchClient, bar: { atMost: 1.2 } },
  "SDK run('true')": { open: sdkClient, bar: {} },
};

export async function run({ profile, progress }) {
  const samples = new Map(Object.keys(clients).map((name) => [name, { raw: [], first: [] }]));
  await warmUp(progress);
  for (let round = 1; round <= SERVERS; round += 1) {
    for (const [name, { open }] of Object.entries(clients)) {
      progress(`${name}, new server ${round} of ${SERVERS}`);
      const found = await withClient(open, profile, (client) =>
        inTurns({ raw: () => rawSpawn('true'), first: client.runTrue }, { turns: FIRST }),
      );
      for (const [side, each] of Object.entries(found)) samples.get(name)[side].push(...each);
    }
  }
  return Array.from(samples, ([name, found]) =>
    row({
      what: `${name}: p50 of the first ${FIRST} of a new server, of raw spawn`,
      ...ofOther(found, 'first'),
      ...clients[name].bar,
    }),
  );
}

/** Otherwise the client's own first hundred would be measured as well. */
async function warmUp(progress) {
  progress('the clients are used for a while');
  for (const { open } of Object.values(clients))
    await withClient(open, undefined, async (client) => {
      for (let turn = 0; turn < CLIENT_WARM_UP; turn += 1) {
        await rawSpawn('true');
        await client.runTrue();
      }
    });
}

async function withClient(open, profile, work) {
  const server = await openServer({ profile });
  try {
    const client = await open(server);
    const result = await work(client);
    await client.close();
    return result;
  } finally {
    await server.stop();
  }
}
