// A server in a program of its own, to be killed. Argument: the home. Says "ready" when it is loaded, opens its doors when
// anything comes from the standard input, and then says "up".
import { once } from 'node:events';
import { startServer } from '../../dist/server/server.js';

const env = { PATH: process.env.PATH, HOME: process.argv[2], SHELL: '/bin/bash' };
process.stdout.write('ready\n');
await once(process.stdin, 'data');
await startServer({ home: process.argv[2], env, keeperArgs: ['--idle-ms', '60000'] });
process.stdout.write('up\n');
