// The processes of one session, as its connection reaches them: process/*. Calls of one process keep their order because
// each is handed to the host in the turn in which it came.

import { constants } from 'node:os';
import { pathToFileURL } from 'node:url';
import type { Clock } from '../../../base/clock.ts';
import { listAll } from '../../../protocol/list-all.ts';
import { HoldfastError } from '../../../protocol/errors.ts';
import type { HostApi, Owner } from '../../../protocol/host-api.ts';
import type { StartSpec } from '../../../protocol/operations.ts';
import type { ProcessInfo } from '../../../protocol/process.ts';
import { follow } from './follower.ts';
import { decodeBase64 } from '../fs/params.ts';
import { hostId, hostWriteId, processIdOf } from './names.ts';
import { exitCodeOf } from './numbering.ts';
import { Fields, invalid } from '../params.ts';
import { readProcess } from './read.ts';
import { confined, refuseUnstartable, startAsked, startProblem, type StartAsked } from './start.ts';
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
  /** Aborted when the connection has ended or has lost its session. */
  readonly signal: AbortSignal;
  /** How long an ended process can still be read. */
  readonly keepMs: number;
  readonly graceMs: number;
  readonly sandbox: SandboxTools;
  /** Counts a start, or refuses it. */
  readonly countStart: () => void;
  readonly report: (message: string) => void;
}

/** An id may be used again this long after its process closed: the peer's number. */
const REUSE_MS = 30_000;

/** A process that the connection is told of, from behind an event of its journal. */
interface Told {
  readonly id: string;
  readonly processId: string;
  readonly after: number;
  readonly sandboxed: boolean;
}

export class Processes {
  private readonly options: ProcessesOptions;
  private readonly snapshots: ShellSnapshots;
  private readonly starting = new Map<string, Promise<unknown>>();

  constructor(options: ProcessesOptions) {
    this.options = options;
    const { surroundings, sandbox } = options;
    this.snapshots = new ShellSnapshots(surroundings.env, (asked) => confined(asked, sandbox));
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

  /** Tells the connection from now on what the session's processes do. What was before, the client asks for. */
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
    { id, processId, after, sandboxed }: Told,
    meant: Promise<boolean> = Promise.resolve(true),
  ): void {
    const { host, clock, wire, owner, signal, report } = this.options;
    const denied = sandboxed ? () => this.denied(id) : undefined;
    follow({ host, clock, wire, owner, id, processId, after, signal, meant, denied }).catch(
      (error: unknown) => {
        report(
          `following ${processId} failed: ${error instanceof Error ? error.message : String(error)}`,
        );
      },
    );
  }

  private start(params: unknown): Promise<unknown> {
    const asked = startAsked(params, this.options.surroundings);
    const { processId } = asked;
    if (this.starting.has(processId)) throw alreadyThere(processId);
    const started = this.launch(asked).finally(() => this.starting.delete(processId));
    this.starting.set(processId, started);
    return started;
  }

  private async launch(asked: StartAsked): Promise<unknown> {
    const { countStart, keepMs, sandbox } = this.options;
    const { processId } = asked;
    refuseUnstartable(asked.spec);
    const { spec, sandboxType } = await confined(await this.snapshots.applied(asked), sandbox);
    const id = hostId(processId);
    countStart();
    const first = this.startOnce(id, processId, { ...spec, keepMs });
    if (!(await first)) {
      await this.makeRoom(id, processId);
      if (!(await this.startOnce(id, processId, { ...spec, keepMs })))
        throw alreadyThere(processId);
    }
    return { processId, sandboxType };
  }

  /** False: the id is taken. It is followed from the first moment, without waiting for the answer to the start. */
  private async startOnce(id: string, processId: string, spec: StartSpec): Promise<boolean> {
    const { host, owner } = this.options;
    const started = host.start(owner, spec).then(
      ({ attached }) => !attached,
      (error: unknown) => {
        if (isCode(error, 'id_taken')) return false;
        throw startProblem(error);
      },
    );
    const meant = started.catch(() => false);
    // After its first event, which is the start itself.
    this.follow({ id, processId, after: 1, sandboxed: isSandboxed(spec) }, meant);
    return started;
  }

  /** Removes an ended process whose id may be used again, or says that it is there. */
  private async makeRoom(id: string, processId: string): Promise<void> {
    const { host, owner, clock } = this.options;
    const { closedAtMs = Infinity } = await host.get(owner, { id });
    if (clock.wallMs() - closedAtMs < REUSE_MS) throw alreadyThere(processId);
    await host.remove(owner, { id });
  }

  private async read(params: unknown): Promise<unknown> {
    const fields = new Fields(params, 'struct ReadParams');
    const processId = fields.text('processId');
    const asked = {
      id: hostId(processId),
      afterSeq: fields.optionalCount('afterSeq') ?? 0,
      maxBytes: fields.optionalCount('maxBytes'),
      waitMs: fields.optionalCount('waitMs') ?? 0,
    };
    if (this.starting.has(processId)) throw refused(`process id ${processId} is starting`);
    try {
      const answer = await readProcess(asked, this.options);
      const { exitCode } = answer;
      if (exitCode === null || exitCode === 0) return answer;
      return { ...answer, sandboxDenied: await this.denied(asked.id) };
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
    return this.put(processId, { data, writeId: hostWriteId(writeId) });
  }

  private async closeStdin(params: unknown): Promise<unknown> {
    const processId = new Fields(params, 'struct CloseStdinParams').text('processId');
    if (this.starting.has(processId)) return { status: 'starting' };
    return this.put(processId, { eof: true });
  }

  private async put(
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

  /** Answered at once: the grace is the process's, not the client's. */
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
    // A closed one is left alone: clients terminate whatever has ended, and what it left running was meant to stay. One
    // that was lost may itself be alive.
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
    return { processes: processes.map(listed) };
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

function listed(info: ProcessInfo): unknown {
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
    exitCode: outcome === undefined ? null : exitCodeOf(outcome, constants.signals),
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

function alreadyThere(processId: string): RpcError {
  return refused(`process ${processId} already exists`);
}
