// The private socket of a gateway's home speaks the protocol of a keeper, so that the command line of this machine finds all
// hosts behind it. Only the user of the home can open it, and no program that a host on this machine started may use it.

import { rmSync } from 'node:fs';
import { systemClock } from '../../base/clock.ts';
import { VERSION } from '../../base/version.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { CloseReport } from '../../protocol/host-api.ts';
import { operationNames } from '../../protocol/operation-names.ts';
import { openHome } from '../../keeper/home.ts';
import { takeLock, type KeeperNote } from '../../keeper/home-lock.ts';
import { Keeper, type ServedHost } from '../../keeper/keeper.ts';
import { readEntry } from '../../system/proc-table.ts';
import { originFor } from './gateway-link.ts';
import type { FleetHost } from '../many/fleet-host.ts';

const nothing: CloseReport = { ended: 0, survivors: [], problems: [] };
const ignore = (): void => undefined;

/** Returns a function that closes it; undefined where another program has the home. */
export async function openGatewaySocket(
  home: string,
  host: FleetHost,
): Promise<(() => Promise<void>) | undefined> {
  const { socket, lock: path } = openHome(home);
  const lock = takeLock<KeeperNote>(path);
  if (!lock) return undefined;
  const { pid } = process;
  lock.note({ pid, startTicks: readEntry(pid)?.startTicks ?? 0 });
  const keeper = new Keeper({
    host: served(host),
    clock: systemClock,
    version: VERSION,
    idleMs: Infinity,
    server: {
      start: () => Promise.reject(refused('start a server')),
      is: () => false,
      isSupervised: false,
      look: ignore,
      retire: ignore,
      end: async () => undefined,
    },
    refuseStop: () => refused('end the hosts of a fleet'),
    stopping: ignore,
    released: async () => undefined,
    left: ignore,
  });
  // A killed gateway may have left it; we hold the lock.
  rmSync(socket, { force: true });
  await keeper.listen(socket);
  return async () => {
    await keeper.stop('the gateway ends');
    rmSync(socket, { force: true });
    lock.release();
  };
}

/** The journals are on other machines: every page is sent. */
function served(host: FleetHost): ServedHost {
  const own: Pick<ServedHost, 'programs' | 'readExtent' | 'isIdle' | 'shutDown'> = {
    programs: { originOf: async (pid) => originFor(pid) },
    readExtent: (owner, params, signal) => host.read(owner, params, signal),
    isIdle: async () => false,
    shutDown: async () => nothing,
  };
  const calls = Object.fromEntries(
    operationNames.map((name) => [name, host[name].bind(host)]),
  ) as unknown as Omit<ServedHost, keyof typeof own>;
  return { ...calls, ...own };
}

function refused(what: string): HoldfastError {
  return new HoldfastError('unsupported', `A gateway cannot ${what}.`);
}
