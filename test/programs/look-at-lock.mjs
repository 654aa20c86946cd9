// Looks who has a lock, again and again, until its standard input ends. Says when it has begun.

import { lockHolder } from '../../dist/keeper/home-lock.js';

const [, , path] = process.argv;
let over = false;
process.stdin.once('end', () => (over = true)).resume();
const look = () => {
  for (let turn = 0; turn < 1000; turn += 1) lockHolder(path);
  if (!over) setImmediate(look);
};
look();
process.stdout.write('looking\n');
