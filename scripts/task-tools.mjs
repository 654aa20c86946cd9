// The tools that the conformance suite's scenarios for tasks call, as commands of `execute`: a proxy in front of the server's
// MCP address that changes the names and arguments of those calls and nothing else.
import { createServer, request as ask } from 'node:http';

/** A command becomes a task when it takes longer than two seconds: the suite's shortest tasks take one. */
const LONGER_SECONDS = 3;
const commands = {
  greet: ({ name }) => `echo 'Hello, ${name}!'`,
  slow_compute: ({ seconds }) => (seconds === 0 ? 'true' : `sleep ${seconds + LONGER_SECONDS}`),
  failing_job: () => `sleep ${LONGER_SECONDS}; exit 1`,
};

/** Answers the address of the proxy, and how it is closed. */
export async function serveTaskTools(target) {
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const headers = { ...request.headers, host: new URL(target).host };
    const body = changed(Buffer.concat(chunks), headers);
    headers['content-length'] = String(body.length);
    const upstream = ask(target, { method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    upstream.on('error', () => response.destroy());
    upstream.end(body);
  });
  await new Promise((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${server.address().port}/mcp`, close };
}

function changed(body, headers) {
  let message;
  try {
    message = JSON.parse(body);
  } catch {
    return body;
  }
  const { name, arguments: given = {} } = message.params ?? {};
  if (message.method !== 'tools/call' || !Object.hasOwn(commands, name)) return body;
  // A header that contradicts the body stays: the server must refuse it.
  if (headers['mcp-name'] === name) headers['mcp-name'] = 'execute';
  const input = { command: commands[name](given), timeout: '5m' };
  const params = { ...message.params, name: 'execute', arguments: input };
  return Buffer.from(JSON.stringify({ ...message, params }));
}
