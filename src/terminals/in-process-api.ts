// The SDK's operations on a host in this process or behind a link: for `embed()`, `holdfast mcp` and the server's MCP.

import { systemClock } from '../base/clock.ts';
import type { Api } from '../client/api.ts';
import { EVERYONE, type HostApi, type Owner } from '../protocol/host-api.ts';
import { decodeRecords } from '../protocol/record.ts';
import { inProcessTerminals, type TerminalCallOptions } from './in-process-terminals.ts';
import { Terminals } from './terminals.ts';

export interface ApiOptions {
  /** For what is kept of screens. */
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  readonly owner: Owner;
}

/** With terminals of its own, which are closed with it. */
export function apiOf(host: HostApi, { folder, env, owner }: ApiOptions): Api {
  const terminals = new Terminals(host, systemClock, folder);
  const shell = env['SHELL'] || '/bin/sh';
  return {
    ...inProcessApi({ host, terminals, clock: systemClock, shell }, owner),
    close: async () => {
      await terminals.close();
      await host.close();
    },
  };
}

export function inProcessApi(options: TerminalCallOptions, owner: Owner): Api {
  const { host } = options;
  return {
    start: (spec, signal) => host.start(owner, spec, signal),
    list: (filter) => host.list(owner, filter),
    get: (id) => host.get(owner, { id }),
    events: async (params, signal) => {
      const { records, ...page } = await host.read(owner, params, signal);
      return { ...page, events: Array.from(decodeRecords(records)) };
    },
    range: (params, signal) => host.range(owner, params, signal),
    text: (params, signal) => host.text(owner, params, signal),
    search: (params, signal) => host.search(owner, params, signal),
    write: (params) => host.write(owner, params),
    resize: (params) => host.resize(owner, params),
    signal: (params) => host.signal(owner, params),
    wait: (params, signal) => host.wait(owner, params, signal),
    ports: (id) => host.ports(owner, { id }),
    tree: (id) => host.tree(owner, { id }),
    remove: (params) => host.remove(owner, params),
    completions: (params, signal) => host.completions(owner, params, signal),
    acknowledge: (params) => host.acknowledge(owner, params),
    attention: (params) => host.attention(owner, params),
    dismiss: (id) => host.dismiss(owner, { id }),
    holdLease: (params) => host.holdLease(owner, params),
    health: () => host.health(EVERYONE, {}),
    terminals: inProcessTerminals(options, { sees: owner, starts: owner }),
    close: () => host.close(),
  };
}
