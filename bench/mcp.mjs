// `execute true` with the official MCP client, over stdio and over HTTP; Node alone and Desktop Commander in turns.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { installedPeer } from '../scripts/peer.mjs';
import { MAIN, openServer } from './support/server.mjs';
import { row } from './support/rows.mjs';
import { inTurns, ofOther, rawSpawn } from './support/turns.mjs';

const FIRST = 100;
const WARM_UP = 600;
const TURNS = 200;
const PEER = {
  name: '@wonderwhy-er/desktop-commander',
  version: '0.2.14',
  bin: 'desktop-commander',
};

export async function run({ progress }) {
  const server = await openServer();
  const peer = await openPeer(progress);
  const stdio = await openStdio([process.execPath, MAIN, 'mcp', '--home', server.home]);
  const http = await openHttp(server);
  const works = {
    raw: () => rawSpawn('true'),
    stdio: () => ourTrue(stdio),
    http: () => ourTrue(http),
    ...(peer && { peer: () => peerTrue(peer.client) }),
  };
  try {
    progress(`the first ${FIRST}, in turns`);
    const first = await inTurns(works, { turns: FIRST });
    progress(`${WARM_UP} more of each`);
    for (let turn = 0; turn < WARM_UP; turn += 1)
      for (const work of Object.values(works)) await work();
    progress('later ones, in turns');
    const later = await inTurns(works, { turns: TURNS });
    return [...rowsOf('stdio', { first, later }, 1.9), ...rowsOf('http', { first, later }, 2.1)];
  } finally {
    await stdio.close();
    await http.close();
    await peer?.close();
    await server.stop();
  }
}

function rowsOf(way, { first, later }, atMost) {
  const what = `execute true, official client, ${way}`;
  return [
    row({ what: `${what}: p50 of raw spawn`, ...ofOther(later, way), atMost }),
    row({ what: `${what}: the first ${FIRST} of a new server`, ...ofOther(first, way) }),
    ...('peer' in later
      ? [
          row({
            what: `${what}: p50 of Desktop Commander ${PEER.version}`,
            ...ofOther(later, way, 'peer'),
            atMost: 0.6,
          }),
        ]
      : []),
  ];
}

async function ourTrue(client) {
  const { structuredContent: told } = await client.callTool({
    name: 'execute',
    arguments: { command: 'true' },
  });
  if (told?.exit_code !== 0) throw new Error(JSON.stringify(told));
}

async function peerTrue(client) {
  const { content, isError } = await client.callTool({
    name: 'start_process',
    arguments: { command: 'true', timeout_ms: 5000 },
  });
  if (isError) throw new Error(JSON.stringify(content));
}

async function openStdio([command, ...args], env = process.env) {
  const client = new Client({ name: 'bench', version: '1' });
  await client.connect(new StdioClientTransport({ command, args, env, stderr: 'ignore' }));
  return client;
}

async function openHttp({ port, token }) {
  const client = new Client({ name: 'bench', version: '1' });
  const headers = { Authorization: `Bearer ${token}` };
  const url = new URL(`http://127.0.0.1:${port}/mcp`);
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
  return client;
}

/** Undefined where it cannot be had: its rows are left out then. */
async function openPeer(progress) {
  const program = installedPeer(PEER);
  if (program === undefined) {
    progress(`${PEER.name} ${PEER.version} cannot be installed here: its rows are left out`);
    return undefined;
  }
  // It keeps its settings in the home directory.
  const home = mkdtempSync(join(tmpdir(), 'holdfast-bench-peer-'));
  const client = await openStdio([process.execPath, program], { ...process.env, HOME: home });
  return {
    client,
    close: async () => {
      await client.close();
      rmSync(home, { recursive: true, force: true });
    },
  };
}
