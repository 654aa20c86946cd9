// process/*: the processes of one session. Calls about one process keep their order, because each is passed to the host
// in the turn in which it arrived.

import { constants } from 'node:os';
import { pathToFileURL } from 'node:url';
import type { Clock } from '../../../base/clock.ts';
import { listAll } from '../../../protocol/list-all.ts';
import { HoldfastError } from '../../../protocol/errors.ts';
import type { HostApi, Owner } from '../../../protocol/host-api.ts';
import type { StartSpec } from '../../../protocol/operations.ts';
import type { ProcessInfo } from '../../../protocol/process.ts';
import { follow } from './follower.ts';
import { hostId, hostWriteId, processIdOf } from './names.ts';
import { codexExitCode } from './numbering.ts';
import { Fields, invalid, decodeBase64 } from '../params.ts';
import { readProcess } from './read.ts';
import {
  confineStart,
  refuseUnstartable,
  parseStart,
  toRpcError,
  type StartRequest,
} from './start.ts';
import { RpcError, rpcCodes, type CodexSurroundings, type MethodTable } from '../rpc.ts';
import type { SandboxTools } from '../sandbox/sandbox.ts';
import { SANDBOX_LABEL, wasDenied } from '../sandbox/denial.ts';
import { ShellSnapshots } from './shell-snapshot.ts';
import type { Wire } from '../wire/wire.ts';

export interface ProcessesOptions {
  readonly host: HostApi;
  readonly clock: Clock;
  readonly owner: Owner;
  readonly wire: Wire;
  readonly surroundings: CodexSurroundings;
  /** Aborts when the connection has ended or lost its session. */
  readonly signal: AbortSignal;
  /** How long an exited process can still be read. */
  readonly keepMs: number;
  readonly graceMs: number;
  readonly sandbox: SandboxTools;
  /** Counts a start against the rate, or throws. */
  readonly countStart: () => void;
  /** What the caller's tokens at a gateway allow. */
  readonly ceiling: StartSpec['ceiling'];
  readonly report: (message: string) => void;
}

/** An id may be reused this long after its process closed, as in codex's server. */
const REUSE_MS = 30_000;

/** A process that the connection follows, from after an event of its journal. */
interface FollowTarget {
  readonly id: string;
  readonly processId: string;
  readonly after: number;
  readonly sandboxed: boolean;
}

export class SessionProcesses {
  private readonly options: ProcessesOptions;
  private readonly snapshots: ShellSnapshots;
  private readonly starting = new Map<string, Promise<unknown>>();

  constructor(options: ProcessesOptions) {
    this.options = options;
    const { surroundings, sandbox } = options;
    this.snapshots = new ShellSnapshots(surroundings.env, (request) =>
      confineStart(request, sandbox),
    );
  }

  get methods(): MethodTable {
    return {
      'process/start': (params) => this.start(params),
      'process/read': (params) => this.read(params),
      'process/write': (params) => this.write(params),
      'process/signal': (params) => this.signal(params),
      'process/terminate': (params) => this.terminate(params),
      'process/list': () => this.list(),
      'process/resize': (params) => this.resize(params),
      'process/closeStdin': (params) => this.closeStdin(params),
    };
  }

  /** Follows the session's processes from now on. The client reads what happened before. */
  async followAll(): Promise<void> {
    const { host, owner } = this.options;
    const processes = await listAll((page) => host.list(owner, page));
    for (const info of processes)
      if (info.state === 'running' || info.state === 'exited')
        this.follow({
          id: info.id,
          processId: processIdOf(info),
          after: info.seq,
          sandboxed: isSandboxed(info),
        });
  }

  private follow(
    { id, processId, after, sandboxed }: FollowTarget,
    confirmed: Promise<boolean> = Promise.resolve(true),
  ): void {
    const { host, clock, wire, owner, signal, report } = this.options;
    const denied = sandboxed ? () => this.denied(id) : undefined;
    follow({ host, clock, wire, owner, id, processId, after, signal, confirmed, denied }).catch(
      (error: unknown) => {
        report(
          `following ${processId} failed: ${error instanceof Error ? error.message : String(error)}`,
        );
      },
    );
  }

  private start(params: unknown): Promise<unknown> {
    const request = parseStart(params, this.options.surroundings);
    const { processId } = request;
    if (this.starting.has(processId)) throw alreadyExists(processId);
    const started = this.launch(request).finally(() => this.starting.delete(processId));
    this.starting.set(processId, started);
    return started;
  }

  private async launch(request: StartRequest): Promise<unknown> {
    const { countStart, keepMs, sandbox } = this.options;
    const { processId } = request;
    refuseUnstartable(request.spec);
    const { spec, sandboxType } = await confineStart(await this.snapshots.apply(request), sandbox);
    const id = hostId(processId);
    countStart();
    const first = this.startOnce(id, processId, { ...spec, keepMs });
    if (!(await first)) {
      await this.freeId(id, processId);
      if (!(await this.startOnce(id, processId, { ...spec, keepMs })))
        throw alreadyExists(processId);
    }
    return { processId, sandboxType };
  }

  /** False: the id is taken. The process is followed at once, without waiting for the answer to the start. */
  private async startOnce(id: string, processId: string, spec: StartSpec): Promise<boolean> {
    const { host, owner, ceiling } = this.options;
    const started = host.start(owner, { ...spec, ceiling }).then(
      ({ attached }) => !attached,
      (error: unknown) => {
        if (isCode(error, 'id_taken')) return false;
        throw toRpcError(error);
      },
    );
    const confirmed = started.catch(() => false);
    // After its first event, which is the start itself.
    this.follow({ id, processId, after: 1, sandboxed: isSandboxed(spec) }, confirmed);
    return started;
  }

  /** Removes an exited process whose id may be reused, or throws that it exists. */
  private async freeId(id: string, processId: string): Promise<void> {
    const { host, owner, clock } = this.options;
    const { closedAtMs = Infinity } = await host.get(owner, { id });
    if (clock.wallMs() - closedAtMs < REUSE_MS) throw alreadyExists(processId);
    await host.remove(owner, { id });
  }

  private async read(params: unknown): Promise<unknown> {
    const fields = new Fields(params, 'struct ReadParams');
    const processId = fields.text('processId');
    const request = {
      id: hostId(processId),
      afterSeq: fields.optionalCount('afterSeq') ?? 0,
      maxBytes: fields.optionalCount('maxBytes'),
      waitMs: fields.optionalCount('waitMs') ?? 0,
    };
    if (this.starting.has(processId)) throw refused(`process id ${processId} is starting`);
    try {
      const answer = await readProcess(request, this.options);
      const { exitCode } = answer;
      if (exitCode === null || exitCode === 0) return answer;
      return { ...answer, sandboxDenied: await this.denied(request.id) };
    } catch (error) {
      if (isCode(error, 'not_found')) throw refused(`unknown process id ${processId}`);
      throw error;
    }
  }

  private denied(id: string): Promise<boolean> {
    const { host, owner } = this.options;
    return wasDenied(host, owner, id);
  }

  private async write(params: unknown): Promise<unknown> {
    const fields = new Fields(params, 'struct WriteParams');
    const processId = fields.text('processId');
    const decoded = decodeBase64(fields.text('chunk'));
    if ('problem' in decoded) throw invalid(decoded.problem);
    const data = decoded.bytes;
    const writeId = fields.text('writeId');
    if (writeId === '') throw invalid('writeId must not be empty');
    if (this.starting.has(processId)) return { status: 'starting' };
    return this.writeInput(processId, { data, writeId: hostWriteId(writeId) });
  }

  private async closeStdin(params: unknown): Promise<unknown> {
    const processId = new Fields(params, 'struct CloseStdinParams').text('processId');
    if (this.starting.has(processId)) return { status: 'starting' };
    return this.writeInput(processId, { eof: true });
  }

  private async writeInput(
    processId: string,
    input: { data?: Buffer; writeId?: string; eof?: boolean },
  ): Promise<unknown> {
    const { host, owner } = this.options;
    try {
      await host.write(owner, { id: hostId(processId), queued: true, ...input });
      return { status: 'accepted' };
    } catch (error) {
      if (isCode(error, 'not_found')) return { status: 'unknownProcess' };
      if (isCode(error, 'stdin_closed') || isCode(error, 'not_running'))
        return { status: 'stdinClosed' };
      throw error;
    }
  }

  private async signal(params: unknown): Promise<unknown> {
    const fields = new Fields(params, 'struct SignalParams');
    const processId = fields.text('processId');
    const name = fields.text('signal');
    const signal = name === 'interrupt' ? 'SIGINT' : name;
    if (!Object.hasOwn(constants.signals, signal))
      throw invalid(`unknown variant \`${name}\`, expected \`interrupt\``);
    await this.starting.get(processId)?.catch(() => undefined);
    await this.send(hostId(processId), signal).catch(ignoreEnded);
    return {};
  }

  /** Answers at once; the grace period runs without the client. */
  private async terminate(params: unknown): Promise<unknown> {
    const processId = new Fields(params, 'struct TerminateParams').text('processId');
    await this.starting.get(processId)?.catch(() => undefined);
    const { host, owner, report } = this.options;
    const id = hostId(processId);
    let info: ProcessInfo;
    try {
      info = await host.get(owner, { id });
    } catch (error) {
      if (isCode(error, 'not_found')) return { running: false };
      throw error;
    }
    // A closed process is left alone: clients terminate everything that has exited, and what it left running was meant
    // to stay. A lost process may still be alive.
    if (info.state !== 'closed')
      this.send(id, 'terminate')
        .catch(ignoreEnded)
        .catch((error: unknown) => report(String(error)));
    return { running: info.state === 'running' };
  }

  private async send(id: string, signal: string): Promise<void> {
    const { host, owner, graceMs } = this.options;
    await host.signal(owner, { id, signal, graceMs, by: 'codex client' });
  }

  private async list(): Promise<unknown> {
    const { host, owner } = this.options;
    const processes = await listAll((page) => host.list(owner, page));
    return { processes: processes.map(toListEntry) };
  }

  private async resize(params: unknown): Promise<unknown> {
    const fields = new Fields(params, 'struct ResizeParams');
    const processId = fields.text('processId');
    const size = { rows: fields.count('rows'), cols: fields.count('cols') };
    const { host, owner } = this.options;
    try {
      await host.resize(owner, { id: hostId(processId), size });
      return {};
    } catch (error) {
      if (isCode(error, 'not_found')) throw refused(`unknown process id ${processId}`);
      if (isCode(error, 'invalid_input')) throw invalid('rows and cols must be from 1 to 1000');
      if (isCode(error, 'not_a_terminal')) throw refused(`process ${processId} has no terminal`);
      if (isCode(error, 'not_running')) throw refused(`process ${processId} has ended`);
      throw error;
    }
  }
}

function toListEntry(info: ProcessInfo): unknown {
  const { pid, argv, cwd, streams, stdin, state, outcome, startedAtMs, bytes, size } = info;
  return {
    processId: processIdOf(info),
    pid,
    argv,
    cwd: pathToFileURL(cwd).href,
    tty: streams === 'pty',
    pipeStdin: stdin === 'pipe',
    ...(size && { size }),
    startedAtMs,
    exited: outcome !== undefined,
    exitCode: outcome === undefined ? null : codexExitCode(outcome, constants.signals),
    closed: state === 'closed' || state === 'lost',
    bytes: bytes.total,
  };
}

function isSandboxed({ labels }: Pick<StartSpec, 'labels'>): boolean {
  return labels?.[SANDBOX_LABEL] !== undefined;
}

function isCode(error: unknown, code: HoldfastError['code']): boolean {
  return error instanceof HoldfastError && error.code === code;
}

function ignoreEnded(error: unknown): void {
  if (!isCode(error, 'not_found') && !isCode(error, 'not_running')) throw error;
}

function refused(message: string): RpcError {
  return new RpcError(rpcCodes.refused, message);
}

function alreadyExists(processId: string): RpcError {
  return refused(`process ${processId} already exists`);
}
