// The benchmark: every figure with a bar in one table. `npm run bench -- start pipe` takes some of them; --json prints
// them for programs; --once measures no figure a second time; --profile FOLDER leaves the CPU profile of each figure's keeper or server there.

import { parseArgs } from 'node:util';
import { join, resolve } from 'node:path';
import { openKeeper } from './support/keeper.mjs';
import { calmMachine, machineLine, watchMachine } from './support/machine.mjs';
import { missed, table } from './support/rows.mjs';

/** `start` first: what Node's own spawn costs grows with the memory of whoever calls it. */
const figures = {
  start: () => import('./start.mjs'),
  server: () => import('./server.mjs'),
  clients: () => import('./clients.mjs'),
  cold: () => import('./cold.mjs'),
  mcp: () => import('./mcp.mjs'),
  e2b: () => import('./e2b.mjs'),
  cli: () => import('./cli.mjs'),
  idle: () => import('./idle.mjs'),
  pipe: () => import('./pipe.mjs'),
  wait: () => import('./wait.mjs'),
  live: () => import('./live.mjs'),
  flood: () => import('./flood.mjs'),
  agent: () => import('./agent.mjs'),
  screen: () => import('./screen.mjs'),
  terminal: () => import('./terminal.mjs'),
  stalls: () => import('./stalls.mjs'),
  owners: () => import('./owners.mjs'),
  bounds: () => import('./bounds.mjs'),
  descendants: () => import('./descendants.mjs'),
  containment: () => import('./containment.mjs'),
  limits: () => import('./limits.mjs'),
  dashboard: () => import('./dashboard.mjs'),
  scale: () => import('./scale.mjs'),
  fleet: () => import('./fleet.mjs'),
};
const names = Object.keys(figures);
/** Cores kept busy by others from which on a missed bar is measured once more. */
const DISTURBED_CORES = 0.1;
/** How long a figure waits for the others to be quiet before it is taken anyway. */
const LONGEST_CALM_MS = 10_000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { json: { type: 'boolean' }, once: { type: 'boolean' }, profile: { type: 'string' } },
});
const unknown = positionals.filter((name) => !names.includes(name));
if (unknown.length > 0) {
  process.stderr.write(
    `There is no figure "${unknown.join('", "')}"; there are ${names.join(', ')}.\n`,
  );
  process.exit(2);
}

const say = (text) => process.stderr.write(`${text}\n`);
say(machineLine());
const rows = [];
for (const figure of names.filter(
  (name) => positionals.length === 0 || positionals.includes(name),
)) {
  let taken = await take(figure);
  if (!values.once && taken.missed && taken.machine.othersCores > DISTURBED_CORES) {
    say(
      `${figure}: a bar was missed while others kept ${taken.machine.othersCores.toFixed(2)} cores busy; once more`,
    );
    taken = await take(figure);
  }
  rows.push(...taken.rows);
}
const failed = missed(rows);
process.stdout.write(
  values.json
    ? `${JSON.stringify({ machine: machineLine(), rows }, undefined, 2)}\n`
    : `\n${table(rows)}\n`,
);
say(failed === 0 ? '\nEvery bar is met.' : `\n${failed} bars are missed.`);
process.exitCode = failed === 0 ? 0 : 1;

async function take(figure) {
  const { run } = await figures[figure]();
  const profile = values.profile === undefined ? undefined : join(resolve(values.profile), figure);
  await calmMachine(LONGEST_CALM_MS);
  const watched = watchMachine();
  const found = await run({
    profile,
    openKeeper: (options) => openKeeper({ ...options, profile }),
    progress: (text) => say(`${figure}: ${text}`),
  });
  const machine = watched();
  say(
    `${figure}: took ${machine.seconds.toFixed(0)} s; others kept ${machine.othersCores.toFixed(2)} cores busy, load ${machine.load.toFixed(2)}`,
  );
  const withFigure = found.map((row) => ({ figure, ...row, othersCores: machine.othersCores }));
  return { rows: withFigure, machine, missed: missed(withFigure) > 0 };
}
