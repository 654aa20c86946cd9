// Asks one host for an operation, with credit for its output, and marks the processes in the answer with the host's name.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import type { Owner, Results } from '../../protocol/host-api.ts';
import { DEFAULT_PAGE_BYTES } from '../../protocol/limits.ts';
import type { OperationName, Params } from '../../protocol/operations.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { Credits } from './credits.ts';
import type { HostTable } from './host-table.ts';
import type { LaneCalls } from './lane-calls.ts';

const KiB = 1024;
/** What an answer usually takes. The rest of a larger one comes in parts, which have credit of their own. */
const usualBytes: Partial<Record<OperationName, number>> = {
  read: DEFAULT_PAGE_BYTES,
  range: DEFAULT_PAGE_BYTES,
  text: 64 * KiB,
  search: 64 * KiB,
  list: 64 * KiB,
};

export class HostAsker {
  private readonly calls: LaneCalls;
  private readonly table: HostTable;
  private readonly credits = new Credits();

  constructor(calls: LaneCalls, table: HostTable) {
    this.calls = calls;
    this.table = table;
  }

  /** A call that waits must not hold credit: `free` asks without. */
  async ask<Name extends OperationName>(
    host: string,
    request: { readonly op: Name; readonly owner: Owner; readonly params: Params<Name> },
    { signal, free = false }: { signal?: CancelSignal | undefined; free?: boolean } = {},
  ): Promise<Results[Name]> {
    const { op, params } = request;
    const usual = usualBytes[op];
    const call = (): Promise<unknown> => this.calls.call(host, request, signal);
    const { maxBytes = usual ?? 0 } = params as { maxBytes?: number };
    const answer = await (usual === undefined || free
      ? call()
      : this.credits.during(host, maxBytes, call));
    const own = (process: ProcessInfo): boolean => !this.table.isOthers(host, process.id);
    return named(op, answer, { host, own }) as Results[Name];
  }
}

/** The name of the host is the gateway's knowledge, and a host has no processes of another one, whatever it says. */
function named(
  op: OperationName,
  answer: unknown,
  { host, own }: { readonly host: string; readonly own: (process: ProcessInfo) => boolean },
): unknown {
  const mark = (process: ProcessInfo): ProcessInfo => ({ ...process, host });
  if (op === 'get') return mark(answer as ProcessInfo);
  if (op === 'start' || op === 'text') {
    const result = answer as Results['start' | 'text'];
    return { ...result, process: mark(result.process) };
  }
  if (op === 'list') {
    const result = answer as Results['list'];
    return { ...result, processes: result.processes.filter(own).map(mark) };
  }
  if (op === 'changes') {
    const result = answer as Results['changes'];
    return { ...result, changed: result.changed.filter(own).map(mark) };
  }
  if (op === 'wait') {
    const result = answer as Results['wait'];
    return { ...result, met: result.met.map((met) => ({ ...met, process: mark(met.process) })) };
  }
  return answer;
}
