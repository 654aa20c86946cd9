// The command line, against a Node that does nothing, in turns.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { MAIN, openServer } from './support/server.mjs';
import { row } from './support/rows.mjs';
import { inTurns, ofOther } from './support/turns.mjs';

const TURNS = 40;

export async function run({ progress }) {
  const server = await openServer();
  const holdfast = (...words) => [MAIN, ...words, '--home', server.home];
  const commands = {
    version: { args: [MAIN, 'version'], bar: { atMost: 1.25 } },
    help: { args: [MAIN, 'help'], bar: { atMost: 1.25 } },
    'run true': { args: [MAIN, 'run', '--home', server.home, 'true'], bar: { atMost: 1.6 } },
    ps: { args: holdfast('ps'), bar: { atMost: 1.6 } },
    wait: { args: holdfast('wait', 'ended'), bar: {} },
    logs: { args: holdfast('logs', 'ended'), bar: {} },
  };
  try {
    await node([MAIN, 'run', '--home', server.home, '--name', 'ended', 'true']);
    progress('each command in turns with node -e 0');
    const works = { 'node -e 0': () => node(['-e', '0']) };
    for (const [name, { args }] of Object.entries(commands)) works[name] = () => node(args);
    const samples = await inTurns(works, { turns: TURNS, warmUp: 3 });
    return Object.entries(commands).map(([name, { bar }]) =>
      row({
        what: `holdfast ${name}: p50 of node -e 0`,
        ...ofOther(samples, name, 'node -e 0'),
        ...bar,
      }),
    );
  } finally {
    await server.stop();
  }
}

async function node(args) {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  child.stdout.resume();
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}`);
}
