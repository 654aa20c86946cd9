// E2B's unmodified SDK beside our own HTTP API: the same login shell, started and waited for, in turns.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Sandbox } from 'e2b';
import { row } from './support/rows.mjs';
import { openServer } from './support/server.mjs';
import { inTurns, ofOther } from './support/turns.mjs';

const TURNS = 200;

export async function run({ profile, progress }) {
  // An empty home: the login files of a person would be most of what is measured.
  const home = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
  process.env.HOME = home;
  const server = await openServer({ profile });
  const url = `http://127.0.0.1:${server.port}`;
  const sandbox = await Sandbox.create({
    apiUrl: `${url}/e2b`,
    sandboxUrl: `${url}/e2b/envd`,
    apiKey: server.token,
  });
  const { HOME, PATH, USER = 'root', LOGNAME = USER } = process.env;
  const headers = { Authorization: `Bearer ${server.token}`, 'Content-Type': 'application/json' };
  const body = JSON.stringify({
    argv: ['/bin/bash', '-l', '-c', 'true'],
    environment: { inherit: 'none', set: { HOME, PATH, USER, LOGNAME } },
    cwd: '~',
    streams: 'separate',
    waitMs: 10_000,
  });
  const native = async () => {
    const answer = await fetch(`${url}/v1/processes`, { method: 'POST', headers, body });
    const { process: ended } = await answer.json();
    if (ended.outcome?.code !== 0) throw new Error(JSON.stringify(ended));
  };
  try {
    progress(`${TURNS} starts each, in turns`);
    const e2b = () => sandbox.commands.run('true');
    const samples = await inTurns({ native, e2b }, { turns: TURNS, warmUp: 50 });
    return [
      row({
        what: "E2B's SDK, start and wait of true: p50 of native HTTP",
        ...ofOther(samples, 'e2b', 'native'),
        atMost: 1.3,
      }),
    ];
  } finally {
    await sandbox.kill();
    await server.stop();
    rmSync(home, { recursive: true, force: true });
  }
}
