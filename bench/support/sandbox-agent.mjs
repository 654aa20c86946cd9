// @sandbox-agent/cli, a server of its own kind that runs a command in one request.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { installedPeer } from '../../scripts/peer.mjs';

export const SANDBOX_AGENT = { name: '@sandbox-agent/cli', version: '0.4.2', bin: 'sandbox-agent' };
const LONGEST_START_MS = 10_000;

/** Its `runTrue` with Node's own fetch; undefined where it cannot be had. */
export async function openSandboxAgent(progress) {
  const program = installedPeer(SANDBOX_AGENT);
  if (program === undefined) {
    progress(`${SANDBOX_AGENT.name} cannot be installed here: its rows are left out`);
    return undefined;
  }
  const home = mkdtempSync(join(tmpdir(), 'holdfast-bench-peer-'));
  const port = await freePort();
  const words = ['server', '--no-token', '--no-telemetry', '--port', String(port)];
  const server = spawn(program, words, { env: { ...process.env, HOME: home }, stdio: 'ignore' });
  const url = `http://127.0.0.1:${port}/v1/processes/run`;
  const headers = { 'Content-Type': 'application/json' };
  const body = JSON.stringify({ command: 'sh', args: ['-c', 'true'] });
  const runTrue = async () => {
    const { exitCode } = await (await fetch(url, { method: 'POST', headers, body })).json();
    if (exitCode !== 0) throw new Error(`exit code ${exitCode}`);
  };
  await answering(runTrue);
  return {
    runTrue,
    close: async () => {
      server.kill('SIGTERM');
      if (server.exitCode === null && server.signalCode === null) await once(server, 'exit');
      rmSync(home, { recursive: true, force: true });
    },
  };
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

async function answering(ask) {
  for (const endMs = performance.now() + LONGEST_START_MS; ;) {
    try {
      return await ask();
    } catch (error) {
      if (performance.now() > endMs) throw error;
      await sleep(50);
    }
  }
}
