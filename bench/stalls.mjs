// The longest time for which the main thread of keeper or server worked without coming back to its event loop, whatever
// one caller does. Time in which the machine had no processor for it is not counted.

import { attacks } from './support/attacks.mjs';
import { HttpCaller, tokenFor } from './support/http-caller.mjs';
import { recover, recoveries } from './support/recoveries.mjs';
import { row } from './support/rows.mjs';
import { openServer } from './support/server.mjs';
import { timed } from './support/statistics.mjs';

const ATTACK_MS = 4000;
const BAR_MS = 100;
/** It stood still without working: for a disk or a lock. Shorter than this it may have been the machine. */
const STANDSTILL_MS = 500;

export async function run(context) {
  const rows = [];
  for (const [name, attack] of chosen(attacks)) {
    context.progress(name);
    // A server of its own for each: none pays for what another has left.
    const server = await openServer({ profile: context.profile, stalls: true });
    const bob = new HttpCaller(server.port, tokenFor(server.home, 'bob'));
    try {
      await server.stalls();
      let note = '';
      const attackMs = await timed(() =>
        attack(bob, AbortSignal.timeout(ATTACK_MS)).catch((error) => (note = error.message)),
      );
      const { keeper, server: own } = await server.stalls();
      const told = note.slice(0, 100) || `${(attackMs / 1000).toFixed(0)} s`;
      const each = (who, { busyMs, heldMs }) =>
        row({
          what: `${name}: ${who}`,
          value: heldMs > STANDSTILL_MS ? heldMs : busyMs,
          unit: 'ms',
          atMost: BAR_MS,
          note: `held up for ${heldMs.toFixed(0)} ms; ${told}`,
        });
      rows.push(each('keeper', keeper), each('server', own));
    } finally {
      bob.close();
      await server.stop();
    }
  }
  for (const [name, recovery] of chosen(recoveries)) {
    context.progress(name);
    const { longestMs, readyMs } = await recover(recovery);
    const note = `ready after ${readyMs.toFixed(0)} ms`;
    rows.push(row({ what: `${name}: keeper`, value: longestMs, unit: 'ms', atMost: BAR_MS, note }));
  }
  return rows;
}

/** STALLS names some of them, separated by commas. */
function chosen(all) {
  const names = process.env.STALLS?.split(',');
  return Object.entries(all).filter(([name]) => names?.includes(name) ?? true);
}
