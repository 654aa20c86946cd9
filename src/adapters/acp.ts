// Processes as display terminals of the Agent Client Protocol, version 2: what an agent sends with `session/update`, and its
// answer to `terminal/cancel`. The id of a terminal is that of its process, so it stays the same after a restart of the agent.

import type { Holdfast } from '../client/holdfast.ts';
import type { ProcessHandle } from '../client/process-handle.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { Outcome } from '../protocol/process.ts';

interface TerminalUpdate {
  readonly sessionUpdate: 'terminal_update';
  readonly terminalId: string;
  readonly command?: string;
  readonly cwd?: string;
  readonly size?: { readonly cols: number; readonly rows: number };
  /** Replaces everything that the client shows of this terminal. */
  readonly output?: { readonly data: string };
  readonly capabilities?: { readonly cancel?: object };
  readonly exitStatus?: { readonly exitCode?: number; readonly signal?: string };
}

interface TerminalOutputChunk {
  readonly sessionUpdate: 'terminal_output_chunk';
  readonly terminalId: string;
  readonly data: string;
}

/** More than a person scrolls back through, and small enough for one message. */
const SNAPSHOT_BYTES = 1024 * 1024;

/**
 * First a snapshot of the newest output, then each piece as it is printed, and at its exit how the process ended; what
 * descendants print after that still comes. The protocol knows no offsets: after a restart, or for `session/load`, call it
 * again, and the new snapshot replaces the old output.
 */
export async function* terminalUpdates(
  handle: ProcessHandle,
  { signal }: { readonly signal?: AbortSignal } = {},
): AsyncGenerator<TerminalUpdate | TerminalOutputChunk> {
  const { id: terminalId, command, cwd, size, outcome } = await handle.status();
  const update = { sessionUpdate: 'terminal_update', terminalId } as const;
  const { bytes, seq } = await newestOutput(handle, signal);
  yield {
    ...update,
    command,
    cwd,
    ...(size && { size: { cols: size.cols, rows: size.rows } }),
    output: { data: bytes.toString('base64') },
    capabilities: outcome ? {} : { cancel: {} },
  };
  const rest = handle.events({ since: seq, follow: true, ...(signal && { signal }) });
  let isOver = false;
  const describeEnd = async (): Promise<TerminalUpdate> => {
    isOver = true;
    const ended = await handle.waitForExit(signal ? { signal } : {});
    return { ...update, capabilities: {}, exitStatus: exitStatusOf(ended.outcome) };
  };
  if (outcome) yield await describeEnd();
  for await (const event of rest) {
    if (event.kind === 'exited' && !isOver) yield await describeEnd();
    if (event.kind === 'output')
      yield {
        sessionUpdate: 'terminal_output_chunk',
        terminalId,
        data: event.data.toString('base64'),
      };
  }
  // A process that was lost has no exit.
  if (!isOver) yield await describeEnd();
}

async function newestOutput(
  handle: ProcessHandle,
  signal: AbortSignal | undefined,
): Promise<{ bytes: Buffer; seq: number }> {
  const pieces: Buffer[] = [];
  let [seq, total] = [0, 0];
  for await (const event of handle.events(signal ? { signal } : {})) {
    seq = event.seq;
    if (event.kind !== 'output') continue;
    pieces.push(event.data);
    total += event.data.length;
    while (pieces[0] && total - pieces[0].length >= SNAPSHOT_BYTES)
      total -= pieces.shift()?.length ?? 0;
  }
  return { bytes: Buffer.concat(pieces).subarray(-SNAPSHOT_BYTES), seq };
}

/** Neither, if the outcome is unknown. */
function exitStatusOf(outcome: Outcome): { exitCode?: number; signal?: string } {
  return {
    ...('code' in outcome && outcome.code !== undefined && { exitCode: outcome.code }),
    ...('signal' in outcome && outcome.signal !== undefined && { signal: outcome.signal }),
  };
}

/** As the SDK of the protocol has it: it answers with the code of its own errors only. */
type RequestError = new (code: number, message: string) => Error;

const INVALID_PARAMS = -32602;

/** For `terminal/cancel`: ends the process with everything that it started. */
export async function cancelTerminal(
  { holdfast, RequestError }: { readonly holdfast: Holdfast; readonly RequestError: RequestError },
  { terminalId }: { readonly terminalId: string },
): Promise<Record<string, never>> {
  const handle = await holdfast.get(terminalId).catch((error: unknown) => {
    if (!(error instanceof HoldfastError) || error.code !== 'not_found') throw error;
  });
  if (handle === undefined || (await handle.status()).outcome)
    throw new RequestError(INVALID_PARAMS, `There is no running terminal "${terminalId}".`);
  await handle.terminate({ by: 'acp' });
  return {};
}
