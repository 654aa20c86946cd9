// Prints the help of every named command, each followed by a NUL: the program at the given path, started anew for each, in
// this one process.
import { createRequire } from 'node:module';
import { setImmediate as turn } from 'node:timers/promises';

/** The exit code of the program until its command has answered. */
const UNANSWERED = 13;

const require = createRequire(import.meta.url);
const [, , main, ...names] = process.argv;
for (const name of names) {
  process.argv = [process.argv[0], main, 'help', name];
  delete require.cache[require.resolve(main)];
  require(main);
  while (process.exitCode === UNANSWERED) await turn();
  process.stdout.write('\0');
}
