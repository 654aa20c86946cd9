// Tasks with the sessions of @modelcontextprotocol/ext-tasks, as programs use them: called, settled, cancelled, and resumed
// from a stored reference by a second client. Answers what was checked, whether it holds, and what was seen.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const VERSION = '2026-07-28';
const clientInfo = { name: 'sessions', version: '1' };
const clientCapabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} } };

export async function settledInAnotherProgram(folder, url) {
  const find = createRequire(join(folder, 'package.json'));
  const load = (name) => import(pathToFileURL(find.resolve(name)).href);
  const module = 'node_modules/@modelcontextprotocol/ext-tasks/dist/client/index.js';
  const { createTaskSessionFromClient } = await import(pathToFileURL(join(folder, module)).href);
  const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
  const open = async () => {
    const client = new Client(clientInfo, { versionNegotiation: { mode: { pin: VERSION } } });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    const session = createTaskSessionFromClient(client, {
      endpointId: 'holdfast',
      rawDispatch: (request) => dispatch(url, request),
      v2RequestFraming: { protocolVersion: VERSION, clientInfo, clientCapabilities },
    });
    return { session, close: () => Promise.all([session.close(), client.close()]) };
  };
  const [one, two] = [await open(), await open()];
  try {
    const call = (command) => one.session.callTool('execute', { command, timeout: '5m' });
    const [settling, ending, moving] = await Promise.all(
      ['sleep 3; exit 3', 'exec sleep 600', 'sleep 4; exit 4'].map(call),
    );
    const settled = await settling.settle();
    const cancelled = ending.result();
    await ending.cancel();
    let stored;
    await moving.handoff((reference) => {
      stored = JSON.stringify(reference);
    });
    const resumed = await two.session.resumeTask(JSON.parse(stored));
    const moved = await resumed.result();
    const seen = [
      settled.outcome.result?.structuredContent?.exit_code,
      (await cancelled).status,
      moved.result?.structuredContent?.exit_code,
    ];
    const ok = JSON.stringify(seen) === '[3,"cancelled",4]';
    return ['ext-tasks: settled, cancelled, resumed by another client', ok, JSON.stringify(seen)];
  } finally {
    await Promise.all([one.close(), two.close()]);
  }
}

async function dispatch(url, { method, params }) {
  const name = params.name ?? params.taskId;
  const answer = await fetch(url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': VERSION,
      'Mcp-Method': method,
      ...(name !== undefined && { 'Mcp-Name': name }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  const text = await answer.text();
  const { result, error } = JSON.parse(text.startsWith('{') ? text : /^data: (.*)$/m.exec(text)[1]);
  return error ? { kind: 'error', error } : { kind: 'result', result };
}
