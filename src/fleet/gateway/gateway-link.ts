// A gateway in the place of a keeper's link, so that the server's doors open on a fleet as on one machine.

import { readFileSync } from 'node:fs';
import { VERSION } from '../../base/version.ts';
import { MARKER_NAME } from '../../host/start/environment.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { CallerOrigin, HostApi } from '../../protocol/host-api.ts';
import { operationNames } from '../../protocol/operation-names.ts';
import type { KeeperLink } from '../../keeper/link.ts';
import { PROTOCOL_VERSION } from '../../keeper/messages.ts';
import type { Gateway } from './gateway.ts';

export function gatewayLink(gateway: Gateway): KeeperLink {
  const { host } = gateway;
  const calls = Object.fromEntries(operationNames.map((name) => [name, host[name].bind(host)]));
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  return {
    ...(calls as unknown as Omit<HostApi, 'close'>),
    keeper: {
      protocol: PROTOCOL_VERSION,
      version: VERSION,
      pid: process.pid,
      operations: operationNames,
    },
    origin: async (pid) => originFor(pid),
    stop: () => {
      const problem = 'A gateway cannot end the hosts of a fleet.';
      return Promise.reject(new HoldfastError('unsupported', problem));
    },
    ended,
    close: async () => {
      await gateway.close();
      end();
    },
  };
}

/** A gateway starts no processes. One that a host on this machine started must not act for all owners. */
export function originFor(pid: number): CallerOrigin {
  return { inside: hasMarker(pid) };
}

/** A program whose environment cannot be read is not ours to trust. */
function hasMarker(pid: number): boolean {
  try {
    const variables = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
    return variables.some((each) => each.startsWith(`${MARKER_NAME}=`));
  } catch {
    return true;
  }
}
