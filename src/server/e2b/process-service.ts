// E2B's process service. A pid names a process: the living one of this owner that has it, else the newest that had it.

import { randomId } from '../../base/ids.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { HostApi } from '../../protocol/host-api.ts';
import { PACE_BYTES } from '../../protocol/limits.ts';
import { listAll } from '../../protocol/list-all.ts';
import type { StartSpec } from '../../protocol/operations.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { E2bStream, type E2bStreamParams } from '../../protocol/rendering/e2b-stream.ts';
import { writePaced } from '../http/paced-write.ts';
import type { Exchange } from '../http/router.ts';
import { E2bError } from './errors.ts';
import { STREAM_HEADERS, type E2bOptions, type Target } from './target.ts';
import {
  getBytes,
  getFields,
  getFlag,
  getNumber,
  getText,
  getTextMap,
  getTexts,
  invalid,
  type Fields,
} from './messages.ts';
import { LEASE, LEASE_ENDED } from './sandbox-store.ts';
import { keepaliveMs, timeoutOf } from './stream-headers.ts';
import { expandPath, ownUser } from './users.ts';

const PAGE_BYTES = 256 * 1024;
/** What a client that connects to a terminal gets of its past. */
const TERMINAL_REPLAY_BYTES = 1024 * 1024;
const TAG_LABEL = 'e2b.tag';

export class ProcessService {
  private readonly options: E2bOptions;
  private readonly host: HostApi;

  readonly unary = {
    'process.Process/List': (target: Target) => this.list(target),
    'process.Process/Update': (target: Target, fields: Fields) => this.update(target, fields),
    'process.Process/SendInput': (target: Target, fields: Fields) => this.sendInput(target, fields),
    'process.Process/SendSignal': (target: Target, fields: Fields) => this.signal(target, fields),
    'process.Process/CloseStdin': (target: Target, fields: Fields) =>
      this.closeStdin(target, fields),
  };
  readonly streams = {
    'process.Process/Start': (target: Target, fields: Fields, exchange: Exchange) =>
      this.start(target, fields, exchange),
    'process.Process/Connect': (target: Target, fields: Fields, exchange: Exchange) =>
      this.connect(target, fields, exchange),
  };

  constructor(options: E2bOptions) {
    this.options = options;
    this.host = options.host;
  }

  private async start(target: Target, fields: Fields, exchange: Exchange): Promise<void> {
    const { startRate } = this.options;
    const timeoutMs = timeoutOf(exchange.request);
    const spec = this.startSpec(target, fields, timeoutMs);
    startRate.take({ tokenId: exchange.caller.tokenId, admin: target.admin });
    const process = await this.begin(target, spec);
    await this.follow(target, process, streamParams(process, exchange), exchange);
  }

  private async begin({ owner }: Target, spec: StartSpec): Promise<ProcessInfo> {
    try {
      return (await this.host.start(owner, spec)).process;
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      if (error.code === 'cwd_not_found') throw invalid(`cwd '${spec.cwd ?? ''}' does not exist`);
      if (error.code !== 'program_not_found' && error.code !== 'program_not_executable')
        throw error;
      throw invalid(`error starting process '${spec.argv?.join(' ') ?? ''}': ${error.message}`);
    }
  }

  private startSpec({ sandbox }: Target, fields: Fields, timeoutMs: number | undefined): StartSpec {
    const config = getFields(fields, 'process');
    const cmd = config && getText(config, 'cmd');
    if (!config || !cmd) throw invalid('process.cmd is missing');
    const envs = getTextMap(config, 'envs');
    const pty = getFields(fields, 'pty');
    const tag = getText(fields, 'tag');
    return {
      argv: [cmd, ...getTexts(config, 'args')],
      cwd: expandPath(
        getText(config, 'cwd') ?? '',
        this.options.defaultDirectory ?? ownUser().home,
      ),
      environment: { inherit: 'none', set: { ...this.baseVariables(), ...sandbox?.env } },
      env: envs,
      ...(pty
        ? { streams: 'pty', size: sizeOf(pty), ...(envs['TERM'] && { term: envs['TERM'] }) }
        : { streams: 'separate', stdin: getFlag(fields, 'stdin') === false ? 'none' : 'pipe' }),
      key: `e2b-${randomId()}`,
      ...(tag !== undefined && { labels: { [TAG_LABEL]: tag } }),
      ...(timeoutMs !== undefined && { hardTimeoutMs: timeoutMs }),
      ...(sandbox && { lease: LEASE }),
    };
  }

  private baseVariables(): Record<string, string> {
    const { name, home } = ownUser();
    const path = this.options.env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin';
    return { PATH: path, HOME: home, USER: name, LOGNAME: name };
  }

  private async connect(target: Target, fields: Fields, exchange: Exchange): Promise<void> {
    const process = await this.find(target, fields);
    const params = streamParams(process, exchange);
    const timeoutMs = timeoutOf(exchange.request);
    const skipBytes = params.isTerminal
      ? Math.max(0, process.bytes.total - TERMINAL_REPLAY_BYTES)
      : 0;
    const connected = { ...params, skipBytes, ...(timeoutMs !== undefined && { timeoutMs }) };
    await this.follow(target, process, connected, exchange);
  }

  private async follow(
    { owner }: Target,
    { id }: ProcessInfo,
    params: E2bStreamParams,
    exchange: Exchange,
  ): Promise<void> {
    const { clock, handover } = this.options;
    const { response, request, gone } = exchange;
    const followed = { op: 'follow', render: 'e2b', params: { id, ...params } } as const;
    // HTTP/1.0 knows no chunks.
    if (request.httpVersionMinor >= 1)
      if (await handover?.tryAnswer(exchange, owner, followed, STREAM_HEADERS)) return;
    const now = (): number => clock.nowUs() / 1000;
    const stream = new E2bStream(params, now());
    const pace = { maxBytes: PAGE_BYTES, paceBytes: PACE_BYTES, reader: randomId() };
    response.writeHead(200, STREAM_HEADERS);
    await writePaced(exchange, stream.begin());
    for (let read = stream.next(now()); read; read = stream.next(now())) {
      const page = await this.host.read(owner, { id, ...read, ...pace }, gone);
      const bytes = stream.take(page, now());
      page.release?.();
      if (bytes.length > 0) await writePaced(exchange, bytes);
    }
    response.end();
  }

  private async list({ owner }: Target): Promise<unknown> {
    const running = await listAll((page) => this.host.list(owner, page), { state: 'running' });
    return {
      processes: running.map(({ argv: [cmd = '', ...args], pid, cwd, labels }) => ({
        // Values of variables are never shown again.
        config: { cmd, args, cwd, envs: {} },
        pid,
        ...(labels?.[TAG_LABEL] !== undefined && { tag: labels[TAG_LABEL] }),
      })),
    };
  }

  private async update(target: Target, fields: Fields): Promise<void> {
    const { id, owner, streams } = await this.living(target, fields);
    const pty = getFields(fields, 'pty');
    if (!pty) return;
    if (streams !== 'pty')
      throw new E2bError('internal', 'error resizing tty: tty not assigned to process');
    await this.host.resize(owner, { id, size: sizeOf(pty) });
  }

  private async sendInput(target: Target, fields: Fields): Promise<void> {
    const { id, owner, streams } = await this.living(target, fields);
    const input = getFields(fields, 'input') ?? {};
    const [stdin, pty] = [getBytes(input, 'stdin'), getBytes(input, 'pty')];
    const data = stdin ?? pty;
    if (!data) throw new E2bError('unimplemented', 'the input is neither stdin nor pty');
    if (stdin && streams === 'pty')
      throw new E2bError(
        'internal',
        'error writing to stdin: tty assigned to process — input should be written to the pty, not the stdin',
      );
    if (pty && streams !== 'pty')
      throw new E2bError(
        'internal',
        'error writing to tty: tty not assigned to process — input should be written to the stdin, not the pty',
      );
    await this.write(owner, { id, data }, 'error writing to stdin: stdin not enabled or closed');
  }

  private async closeStdin(target: Target, fields: Fields): Promise<void> {
    const { id, owner, streams } = await this.living(target, fields);
    if (streams === 'pty')
      throw new E2bError(
        'unknown',
        'error closing stdin: cannot close stdin for PTY process — send Ctrl+D (0x04) instead',
      );
    await this.write(owner, { id, eof: true }, undefined);
  }

  /** `refusal`: what a closed stdin is answered with; undefined if it is fine. */
  private async write(
    owner: string,
    params: { id: string; data?: Buffer; eof?: boolean },
    refusal: string | undefined,
  ): Promise<void> {
    try {
      await this.host.write(owner, params);
    } catch (error) {
      if (!(error instanceof HoldfastError) || error.code !== 'stdin_closed') throw error;
      if (refusal !== undefined) throw new E2bError('internal', refusal);
    }
  }

  private async signal(target: Target, fields: Fields): Promise<void> {
    const { id, owner } = await this.living(target, fields);
    const signal = signalOf(fields['signal']);
    await this.host.signal(owner, { id, signal, by: 'e2b' });
  }

  /** A process that has ended is not found, as in E2B. */
  private async living(target: Target, fields: Fields): Promise<ProcessInfo> {
    const process = await this.find(target, fields);
    if (process.state === 'running') return process;
    throw notFound(`pid ${process.pid}`);
  }

  private async find({ owner }: Target, fields: Fields): Promise<ProcessInfo> {
    const selector = getFields(fields, 'process') ?? {};
    const [pid, tag] = [getNumber(selector, 'pid'), getText(selector, 'tag')];
    if (pid === undefined && tag === undefined) throw invalid('process has neither pid nor tag');
    const all = await listAll(
      (page) => this.host.list(owner, page),
      tag === undefined ? {} : { label: `${TAG_LABEL}=${tag}` },
    );
    const found = all.find((process) => pid === undefined || process.pid === pid);
    if (!found) throw notFound(pid === undefined ? `tag ${tag}` : `pid ${pid}`);
    return found;
  }
}

function notFound(which: string): E2bError {
  return new E2bError('not_found', `process with ${which} not found`);
}

function sizeOf(pty: Fields): { cols: number; rows: number } {
  const size = getFields(pty, 'size') ?? {};
  return { cols: getNumber(size, 'cols') || 80, rows: getNumber(size, 'rows') || 24 };
}

function signalOf(value: unknown): string {
  if (value === 'SIGNAL_SIGKILL' || value === 9) return 'SIGKILL';
  if (value === 'SIGNAL_SIGTERM' || value === 15) return 'SIGTERM';
  throw new E2bError('unimplemented', 'only SIGKILL and SIGTERM can be sent');
}

function streamParams({ pid, streams }: ProcessInfo, { request }: Exchange): E2bStreamParams {
  return {
    pid,
    isTerminal: streams === 'pty',
    keepaliveMs: keepaliveMs(request),
    sandboxEnded: LEASE_ENDED,
  };
}
