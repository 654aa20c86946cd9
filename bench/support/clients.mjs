// What people bring to a server: each way of running `true` until its end is known, with the client that it is usually
// done with. The leanest client there can be is in server.mjs.

import { connect } from '../../dist/index.js';
import { HttpCaller } from './http-caller.mjs';

/** coder's process API with node:http and connections that are kept: two requests. */
export function coderClient({ port, token }) {
  const caller = new HttpCaller(port, token, { maxSockets: 256 });
  const at = '/api/v0/processes';
  const start = (spec) => caller.json('POST', `${at}/start`, spec);
  const wait = (id) => caller.json('GET', `${at}/${id}/output?wait=true`);
  return {
    start,
    wait,
    parked: async () => (await caller.json('GET', '/v1/health')).parkedWaits,
    runTrue: async () => {
      const { running, exit_code: code } = await wait((await start({ command: 'true' })).id);
      if (running || code !== 0) throw new Error(`running ${running}, exit code ${code}`);
    },
    close: () => caller.close(),
  };
}

/** The native API with Node's own fetch: one request. */
export function fetchClient({ port, token }) {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const body = JSON.stringify({ command: 'true', waitMs: 10_000 });
  return {
    runTrue: async () => {
      const url = `http://127.0.0.1:${port}/v1/processes`;
      const { process: ended } = await (await fetch(url, { method: 'POST', headers, body })).json();
      if (ended.outcome?.code !== 0) throw new Error(JSON.stringify(ended));
    },
    close: () => undefined,
  };
}

/** The SDK with its own way to the local server. */
export async function sdkClient({ home }) {
  const holdfast = await connect({ home, startIfMissing: false });
  return {
    runTrue: async () => {
      const { exitCode } = await holdfast.run('true');
      if (exitCode !== 0) throw new Error(`exit code ${exitCode}`);
    },
    close: () => holdfast.close(),
  };
}
