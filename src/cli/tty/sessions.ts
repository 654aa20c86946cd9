// Terminals as `tty` commands name and describe them: agent-tty's words for their states, and the folder beside the
// journal where their pictures lie.

import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { idPattern } from '../../base/ids.ts';
import { listAll } from '../../protocol/list-all.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { terminalFolder } from '../../journal/terminal-folder.ts';
import { isError, type Caller } from '../caller.ts';
import { signalNumber } from '../output/outcome.ts';
import { TtyError } from './envelope.ts';

export type Status = 'running' | 'exited' | 'failed' | 'destroying' | 'destroyed';

function destroyedFile(caller: Caller, process: ProcessInfo): string {
  return join(terminalFolder(caller.home, process), 'destroyed');
}

export function noteDestroyed(caller: Caller, process: ProcessInfo): void {
  mkdirSync(terminalFolder(caller.home, process), { recursive: true, mode: 0o700 });
  writeFileSync(destroyedFile(caller, process), '', { mode: 0o600 });
}

/** The terminal of this id or name. Ids are checked before anything is asked. */
export async function findTerminal(caller: Caller, id: string): Promise<ProcessInfo> {
  if (!idPattern.test(id))
    throw new TtyError('INVALID_SESSION_ID', 'A session id has letters, digits, "-" and "_" only.');
  try {
    const found = await caller.find(id);
    if (found.streams === 'pty') return found;
  } catch (error) {
    if (!isError(error, 'not_found')) throw error;
  }
  throw new TtyError('SESSION_NOT_FOUND', `Session "${id}" was not found.`, { sessionId: id });
}

/** As `findTerminal`, for commands that need a living one. */
export async function liveTerminal(caller: Caller, id: string): Promise<ProcessInfo> {
  const found = await findTerminal(caller, id);
  const status = statusOf(caller, found);
  if (status === 'running') return found;
  const details = { sessionId: found.id, status };
  if (status === 'destroyed')
    throw new TtyError('SESSION_ALREADY_DESTROYED', `Session ${found.id} was destroyed.`, details);
  throw new TtyError('SESSION_NOT_RUNNING', `Session ${found.id} is not running.`, details);
}

export function statusOf(caller: Caller, process: ProcessInfo): Status {
  if (existsSync(destroyedFile(caller, process)))
    return process.state === 'running' ? 'destroying' : 'destroyed';
  if (process.state === 'running') return 'running';
  return process.outcome?.kind === 'lost' ? 'failed' : 'exited';
}

export async function terminalsOf(caller: Caller): Promise<ProcessInfo[]> {
  const host = await caller.hostIfUsed();
  if (!host) return [];
  const processes = await listAll((page) => host.list(caller.sees, page));
  return processes.filter(({ streams }) => streams === 'pty');
}

/** The peer's manifest. Values of the environment are not in it: they are kept nowhere. */
export function manifestOf(
  caller: Caller,
  process: ProcessInfo,
  hostPid: number,
): Record<string, unknown> {
  const { outcome, name, size, terminal } = process;
  const status = statusOf(caller, process);
  const code = outcome && 'code' in outcome ? (outcome.code ?? null) : null;
  const changedMs = process.closedAtMs ?? process.exitedAtMs ?? process.lastOutputAtMs;
  return {
    version: 1,
    sessionId: process.id,
    createdAt: new Date(process.startedAtMs).toISOString(),
    updatedAt: new Date(changedMs ?? process.startedAtMs).toISOString(),
    status,
    ...(outcome?.kind === 'lost' && {
      failureReason: `host process died unexpectedly: ${outcome.reason}`,
      failureOrigin: 'host-death',
    }),
    command: process.argv,
    shell: process.argv[0] ?? '',
    cwd: process.cwd,
    ...(name !== undefined && { name }),
    ...(terminal && { term: terminal.term }),
    ...(terminal?.marks !== undefined && { marks: terminal.marks }),
    cols: size?.cols ?? 0,
    rows: size?.rows ?? 0,
    ...(terminal?.idleTimeoutMs !== undefined && { idleTimeoutMs: terminal.idleTimeoutMs }),
    hostPid: status === 'running' || status === 'destroying' ? hostPid : null,
    childPid: outcome?.kind === 'lost' ? null : process.pid,
    exitCode: code,
    exitSignal: exitSignal(process),
  };
}

/** The number as text, as agent-tty gives it. */
function exitSignal({ outcome }: ProcessInfo): string | null {
  return outcome && 'signal' in outcome ? String(signalNumber(outcome.signal)) : null;
}

export function terminationCategory(caller: Caller, process: ProcessInfo): string {
  const status = statusOf(caller, process);
  if (status === 'destroyed' || status === 'destroying') return 'destroyed';
  const { outcome } = process;
  if (!outcome) return 'running';
  if (outcome.kind === 'lost') return 'host-death';
  if (outcome.kind === 'exit') return outcome.code === 0 ? 'clean-exit' : 'nonzero-exit';
  return 'signal-exit';
}

export interface Artifact {
  readonly id: string;
  readonly kind: 'snapshot' | 'screenshot' | 'recording' | 'video';
  readonly filename: string;
  readonly sessionId: string;
  readonly capturedAtSeq: number;
  readonly createdAt: string;
  readonly sha256: string;
  readonly bytes: number;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** How many there are of each kind, and which files are gone. */
export function artifactSummary(caller: Caller, process: ProcessInfo) {
  const artifacts = artifactsOf(caller, process);
  const folder = join(terminalFolder(caller.home, process), 'artifacts');
  const byKind: Partial<Record<Artifact['kind'], number>> = {};
  for (const { kind } of artifacts) byKind[kind] = (byKind[kind] ?? 0) + 1;
  const missing = artifacts
    .filter(
      ({ filename, metadata }) => !existsSync(placeOf(metadata['path'], join(folder, filename))),
    )
    .map(({ id, kind, filename }) => ({ id, kind, filename }));
  return {
    total: artifacts.length,
    byKind,
    missingCount: missing.length,
    health: missing.length === 0 ? 'healthy' : 'degraded',
    ...(missing.length > 0 && { missing }),
    entries: artifacts,
  };
}

/** Where --out put it, or beside its entry. */
function placeOf(out: unknown, usual: string): string {
  return typeof out === 'string' ? out : usual;
}

/** One file per entry beside the artifact itself: entries made at once never overwrite each other. */
function artifactsOf(caller: Caller, process: ProcessInfo): Artifact[] {
  const folder = join(terminalFolder(caller.home, process), 'artifacts');
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith('.entry.json'))
    .map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Artifact)
    .sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1));
}
