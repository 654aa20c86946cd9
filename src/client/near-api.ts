// The SDK over a host that is near: in this program, or behind the keeper's socket.

import { EVERYONE, type HostApi, type Owner } from '../protocol/host-api.ts';
import { decodeRecords } from '../protocol/record.ts';
import type { Api } from './api.ts';

export function nearApi(host: HostApi, owner: Owner): Api {
  return {
    start: (spec) => host.start(owner, spec),
    list: (filter) => host.list(owner, filter),
    get: (id) => host.get(owner, { id }),
    events: async (params, signal) => {
      const { records, ...page } = await host.read(owner, params, signal);
      return { ...page, events: Array.from(decodeRecords(records)) };
    },
    range: (params, signal) => host.range(owner, params, signal),
    text: (params) => host.text(owner, params),
    search: (params, signal) => host.search(owner, params, signal),
    write: (params) => host.write(owner, params),
    resize: (params) => host.resize(owner, params),
    signal: (params) => host.signal(owner, params),
    wait: (params, signal) => host.wait(owner, params, signal),
    ports: (id) => host.ports(owner, { id }),
    remove: (params) => host.remove(owner, params),
    completions: (params, signal) => host.completions(owner, params, signal),
    acknowledge: (params) => host.acknowledge(owner, params),
    health: () => host.health(EVERYONE, {}),
    close: () => host.close(),
  };
}
