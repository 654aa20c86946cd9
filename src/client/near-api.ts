// The SDK over a host that is near: in this program, or behind the keeper's socket.

import { EVERYONE, type HostApi, type Owner } from '../protocol/host-api.ts';
import { decodeRecords } from '../protocol/record.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { Api } from './api.ts';
import type { TerminalApi } from './terminal-api.ts';

export function nearApi(host: HostApi, owner: Owner): Api {
  return {
    start: (spec, signal) => host.start(owner, spec, signal),
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
    terminals: nearTerminals(host, owner),
    close: () => host.close(),
  };
}

function nearTerminals(host: HostApi, owner: Owner): TerminalApi {
  const unseen = (): Promise<never> => {
    const problem = 'A host shows no screens: connect to a server for that.';
    return Promise.reject(new HoldfastError('unsupported', problem));
  };
  return {
    open: (spec) => host.start(owner, { marks: true, argv: ['sh'], ...spec, streams: 'pty' }),
    run: (params, signal) => host.run(owner, params, signal),
    input: (id, { text, base64, keys, paste, writeId }) => {
      if (keys !== undefined || paste !== undefined) return unseen();
      const data = base64 === undefined ? Buffer.from(text ?? '') : Buffer.from(base64, 'base64');
      return host.write(owner, { id, data, as: 'text', writeId });
    },
    mark: (params) => host.mark(owner, params),
    close: (id) => host.remove(owner, { id, force: true }),
    waitForScreen: unseen,
    snapshot: unseen,
    screenshot: unseen,
    recording: unseen,
  };
}
