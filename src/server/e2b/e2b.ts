// The E2B dialect: unary calls and streams of the Connect protocol, files and the control plane. It translates E2B's
// messages to operations of the host.

import { HoldfastError } from '../../protocol/errors.ts';
import type { Owner } from '../../protocol/host-api.ts';
import { endEnvelope } from '../../protocol/rendering/e2b-stream.ts';
import type { Exchange } from '../http/router.ts';
import { ControlPlane } from './control-plane.ts';
import { connectError, E2bError, sandboxGone } from './errors.ts';
import { FileTransfer } from './files/file-transfer.ts';
import { FilesystemService } from './files/filesystem-service.ts';
import { SandboxPaths } from './files/sandbox-paths.ts';
import { readEnvelope, readMessage, type Fields } from './messages.ts';
import { ProcessService } from './process-service.ts';
import { sandboxIdOf, type SandboxStore } from './sandbox-store.ts';
import { STREAM_HEADERS, type E2bOptions, type Target } from './target.ts';
import type { SandboxTokens } from './sandbox-tokens.ts';
import { checkBasicUser } from './users.ts';

/** Owns what a debug client with the admin token starts. */
const DEBUG_OWNER: Owner = 'e2b';

type Unary = (target: Target, fields: Fields) => Promise<unknown>;
type Stream = (target: Target, fields: Fields, exchange: Exchange) => Promise<void>;

export class E2b {
  readonly controlPlane: ControlPlane;
  readonly files: FileTransfer;
  private readonly store: SandboxStore;
  private readonly unary: Readonly<Record<string, Unary>>;
  private readonly streams: Readonly<Record<string, Stream>>;

  constructor(options: E2bOptions, store: SandboxStore, tokens: SandboxTokens) {
    this.store = store;
    this.controlPlane = new ControlPlane(store, tokens, options.home);
    const paths = new SandboxPaths(options.home, options.clock);
    this.files = new FileTransfer({
      paths,
      store,
      tokens,
      clock: options.clock,
      target: (exchange) => this.target(exchange),
    });
    const processes = new ProcessService(options);
    const folders = new FilesystemService(paths, options.clock);
    this.unary = { ...processes.unary, ...folders.unary };
    this.streams = { ...processes.streams, ...folders.streams };
  }

  async call(service: string, exchange: Exchange): Promise<unknown> {
    const name = `${service}/${exchange.params['method'] ?? ''}`;
    const stream = Object.hasOwn(this.streams, name) ? this.streams[name] : undefined;
    if (stream) return this.stream(stream, exchange);
    const unary = Object.hasOwn(this.unary, name) ? this.unary[name] : undefined;
    if (!unary) throw new E2bError('unimplemented', `${name} is not implemented`);
    const target = this.target(exchange);
    checkBasicUser(exchange.request.headers);
    return (await unary(target, readMessage(exchange.body))) ?? {};
  }

  /** 502 says that a sandbox is gone. A client in debug mode, or one that names none, has no sandbox that could be. */
  async health({ request, response }: Exchange): Promise<undefined> {
    const id = request.headers['e2b-sandbox-id'];
    const named = typeof id === 'string' && id !== 'debug_sandbox_id' ? id : undefined;
    if (named !== undefined && !this.store.find(named)) throw sandboxGone();
    response.writeHead(204, { 'Cache-Control': 'no-store' });
    response.end();
    return undefined;
  }

  private target({ caller }: Exchange): Target {
    const { admin, owner } = caller;
    const id = sandboxIdOf(owner);
    if (id === undefined) return { owner: admin ? DEBUG_OWNER : owner, admin };
    const sandbox = this.store.find(id);
    if (!sandbox) throw sandboxGone();
    return { owner, sandbox, admin: false };
  }

  /** Errors go into the last envelope: clients take several statuses of a stream for the end of the sandbox. */
  private async stream(stream: Stream, exchange: Exchange): Promise<undefined> {
    const { response } = exchange;
    const target = this.target(exchange);
    try {
      checkBasicUser(exchange.request.headers);
      await stream(target, readEnvelope(exchange.body), exchange);
    } catch (error) {
      if (!(error instanceof HoldfastError) || exchange.gone.aborted) throw error;
      if (!response.headersSent) response.writeHead(200, STREAM_HEADERS);
      response.end(endEnvelope(connectError(error)));
    }
    return undefined;
  }
}
