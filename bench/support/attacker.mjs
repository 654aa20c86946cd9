// An attack by a program of its own, so that what the attacker's client does with its answers is not taken for the server's
// work. `begin` answers when the attack has prepared itself and goes on; `end` when all of it is over.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import { attacks } from './attacks.mjs';
import { HttpCaller } from './http-caller.mjs';

const THIS_FILE = fileURLToPath(import.meta.url);
/** The attacker's own work is not the server's: it would be done on another machine. */
const ATTACKER_NICE = 10;

export class Attacker {
  constructor({ name, port, token }) {
    // In a session of its own: where sessions are weighed against each other, it would share alice's client's weight.
    const options = { execArgv: [], detached: true };
    this.program = fork(THIS_FILE, [name, String(port), token], options);
    setPriority(this.program.pid, ATTACKER_NICE);
    this.gone = once(this.program, 'exit');
  }

  async begin() {
    await this.tell('begin');
  }

  async end() {
    await this.tell('end');
  }

  async close() {
    this.program.kill('SIGKILL');
    await this.gone;
  }

  async tell(what) {
    this.program.send(what);
    const over = this.gone.then(() => {
      throw new Error('the attacker has gone');
    });
    await Promise.race([once(this.program, 'message'), over]);
  }
}

if (process.argv[1] === THIS_FILE) {
  const [name, port, token] = process.argv.slice(2);
  const bob = new HttpCaller(Number(port), token);
  let over;
  let attacked;
  const begin = () => {
    over = new AbortController();
    return new Promise((resolve, reject) => {
      attacked = attacks[name](bob, over.signal, resolve);
      attacked.then(resolve, reject);
    });
  };
  const end = () => {
    over.abort();
    return attacked;
  };
  process.on('message', (message) => {
    void (message === 'begin' ? begin() : end()).then(() => process.send(message));
  });
}
