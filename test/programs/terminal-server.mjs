// A server in a program of its own, to be killed. Argument: the home. Says "up" when its doors are open.
import { startServer } from '../../dist/server/server.js';

const env = { PATH: process.env.PATH, HOME: process.argv[2], SHELL: '/bin/bash' };
await startServer({ home: process.argv[2], env, keeperArgs: ['--idle-ms', '60000'] });
process.stdout.write('up\n');
