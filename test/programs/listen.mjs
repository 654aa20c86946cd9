// Listens on a free port of 127.0.0.1, prints the port, and ends when its input ends.
import { createServer } from 'node:net';

const server = createServer();
server.listen(0, '127.0.0.1', () => process.stdout.write(`${server.address().port}\n`));
process.stdin.on('end', () => server.close()).resume();
