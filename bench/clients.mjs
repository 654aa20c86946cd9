// The server with the clients that people have, when it has been in use for a while, and Node alone, in turns.
// BENCH_TRACE=1 also shows where the time of one start and wait goes.

import { coderClient, fetchClient, sdkClient } from './support/clients.mjs';
import { openSandboxAgent, SANDBOX_AGENT } from './support/sandbox-agent.mjs';
import { openServer } from './support/server.mjs';
import { row } from './support/rows.mjs';
import { traceLines } from './support/trace.mjs';
import { crowd, EndOnWord, inTurns, ofOther, rawSpawn } from './support/turns.mjs';

const WARM_UP = 1200;
const TURNS = 200;
const CROWD = 200;
const CROWD_ROUNDS = 7;
const EXITS = 150;

export async function run({ profile, progress }) {
  const trace = process.env.BENCH_TRACE === '1';
  const server = await openServer({ profile, trace });
  const coder = coderClient(server);
  const native = fetchClient(server);
  const sdk = await sdkClient(server);
  const peer = await openSandboxAgent(progress);
  const raw = () => rawSpawn('true');
  try {
    progress(`${WARM_UP} starts before`);
    for (let turn = 0; turn < WARM_UP; turn += 1) await coder.runTrue();
    progress('one at a time, in turns');
    const one = await inTurns(
      {
        raw,
        coder: coder.runTrue,
        fetch: native.runTrue,
        sdk: sdk.runTrue,
        ...(peer && { peer: peer.runTrue }),
      },
      { turns: TURNS, warmUp: 20 },
    );
    progress(`${CROWD} at once`);
    const many = await inTurns(
      { raw: crowd(CROWD, raw), coder: crowd(CROWD, coder.runTrue) },
      { turns: CROWD_ROUNDS, warmUp: 2 },
    );
    progress('exit to answer');
    const word = new EndOnWord();
    const exits = await inTurns(
      { raw: () => word.rawEvent(), coder: () => word.answer(coder) },
      { turns: EXITS, warmUp: 20 },
    );
    word.remove();
    if (trace) for (const line of await traceLines(server, coder)) progress(line);
    return [
      row({
        what: 'coder start + wait, node:http with kept connections: p50 of raw spawn',
        ...ofOther(one, 'coder'),
        atMost: 1,
      }),
      row({
        what: 'native start with its end in one request, fetch: p50 of raw spawn',
        ...ofOther(one, 'fetch'),
        atMost: 1,
      }),
      ...(peer
        ? [
            row({
              what: `the same: p50 of ${SANDBOX_AGENT.name} ${SANDBOX_AGENT.version}`,
              ...ofOther(one, 'fetch', 'peer'),
            }),
          ]
        : []),
      row({ what: "SDK run('true'): p50 of raw spawn", ...ofOther(one, 'sdk'), atMost: 1.3 }),
      row({
        what: `coder start + wait, ${CROWD} at once: of ${CROWD} raw spawns at once`,
        ...ofOther(many, 'coder'),
        atMost: 0.7,
      }),
      row({
        what: 'coder, exit to answer: p50 of the raw exit event',
        ...ofOther(exits, 'coder'),
        atMost: 1.9,
      }),
    ];
  } finally {
    coder.close();
    await sdk.close();
    await peer?.close();
    await server.stop();
  }
}
