// The SDK's operations over a host of this program, terminals included.

import { systemClock } from '../../src/base/clock.ts';
import type { Api } from '../../src/client/api.ts';
import type { HostApi, Owner } from '../../src/protocol/host-api.ts';
import { inProcessApi } from '../../src/terminals/in-process-api.ts';
import { Terminals } from '../../src/terminals/terminals.ts';
import { onCleanup, temporaryFolder } from './hosts.ts';

export function apiOver(host: HostApi, owner: Owner): Api {
  const terminals = new Terminals(host, systemClock, temporaryFolder());
  onCleanup(() => terminals.close());
  return inProcessApi({ host, terminals, clock: systemClock, shell: '/bin/bash' }, owner);
}
