// Starts a dev server, waits until it listens, runs tests against it, and leaves nothing behind, also when this program is killed:
// both run under a lease.
import { connect } from 'holdfast';

const SERVER = `
  const server = require('node:http').createServer((_, response) => response.end('hello'));
  server.listen(0, '127.0.0.1', () => console.log('ready'));`;
const TEST = `
  fetch(process.env.BASE).then((answer) => answer.text()).then((text) => {
    console.log(text === 'hello' ? 'ok 1 says hello' : 'not ok 1 says hello');
    process.exitCode = text === 'hello' ? 0 : 1;
  });`;

const holdfast = await connect({ lease: true });
const server = await holdfast.start(['node', '-e', SERVER], { name: 'dev-server' });
const port = await server.waitForPort(undefined, { timeoutMs: 60_000 });
if (port === undefined) {
  const { text } = await server.output();
  throw new Error(`the server does not listen:\n${text}`);
}

const tests = await holdfast.run(['node', '-e', TEST], {
  env: { BASE: `http://127.0.0.1:${port}/` },
});
process.stdout.write(tests.stdout);

const { survivors } = await server.terminate();
console.log(`tests ended with ${tests.exitCode}; ${survivors.length} processes are left`);
await holdfast.close();
process.exitCode = tests.exitCode ?? 1;
