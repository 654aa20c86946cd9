// A caller of the codex door for tests: requests by number, notifications in the order in which they came.

import { WebSocket } from 'ws';
import { serve, type Served } from './coder-client.ts';
import { onCleanup } from './hosts.ts';

export interface RpcProblem {
  readonly code: number;
  readonly message: string;
}

export interface Notification {
  readonly method: string;
  readonly params: {
    readonly processId: string;
    readonly seq: number;
    readonly stream?: string;
    readonly chunk?: string;
    readonly exitCode?: number;
    readonly sandboxDenied?: boolean;
  };
}

export interface ReadResult {
  readonly chunks: readonly {
    readonly seq: number;
    readonly stream: string;
    readonly chunk: string;
  }[];
  readonly nextSeq: number;
  readonly exited: boolean;
  readonly exitCode: number | null;
  readonly closed: boolean;
  readonly failure: string | null;
  readonly sandboxDenied: boolean;
  readonly omitted?: readonly {
    readonly fromSeq: number;
    readonly toSeq: number;
    readonly bytes: number;
    readonly retained: boolean;
  }[];
}

export const ENV = { PATH: process.env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin' };

/** A server whose every report of its own mistakes fails the test, and where its codex door is. */
export async function serveCodex(): Promise<{ served: Served; url: string }> {
  const served = await serve({
    report: (message) => {
      throw new Error(message);
    },
  });
  return { served, url: `ws://127.0.0.1:${served.port}/codex?token=${served.token}` };
}

export class CodexClient {
  readonly notifications: Notification[] = [];
  /** Every message as it came. */
  readonly raw: string[] = [];
  /** Frames of the messages, as far as they are of interest. */
  readonly socket: WebSocket;
  closed = false;
  private lastId = 0;
  private readonly calls = new Map<number, (message: Answer) => void>();
  private readonly watchers = new Set<() => void>();

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on('message', (data: Buffer) => this.received(data.toString()));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.closed = true;
      this.wake();
    });
  }

  /** Over something else that behaves like a WebSocket which is open. */
  static over(socket: WebSocket): CodexClient {
    onCleanup(() => socket.terminate());
    return new CodexClient(socket);
  }

  static async connect(url: string, headers: Record<string, string> = {}): Promise<CodexClient> {
    const socket = new WebSocket(url, { headers, perMessageDeflate: false });
    const client = new CodexClient(socket);
    onCleanup(() => socket.terminate());
    await new Promise<void>((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', reject);
    });
    return client;
  }

  /** Connected and through with the handshake. */
  static async ready(
    url: string,
    { resume, headers }: { resume?: string; headers?: Record<string, string> } = {},
  ): Promise<CodexClient & { session: string }> {
    const client = await CodexClient.connect(url, headers);
    const { sessionId } = (await client.call('initialize', {
      clientName: 'test',
      resumeSessionId: resume ?? null,
    })) as { sessionId: string };
    client.notify('initialized', {});
    return Object.assign(client, { session: sessionId });
  }

  async call(method: string, params?: unknown): Promise<unknown> {
    const answer = await this.ask(method, params);
    if ('error' in answer) throw Object.assign(new Error(answer.error.message), answer.error);
    return answer.result;
  }

  /** The refusal of a call that must be refused. */
  async refusal(method: string, params?: unknown): Promise<RpcProblem> {
    const answer = await this.ask(method, params);
    if ('error' in answer) return answer.error;
    throw new Error(`${method} was answered: ${JSON.stringify(answer.result)}`);
  }

  ask(method: string, params?: unknown): Promise<Answer> {
    const id = (this.lastId += 1);
    return new Promise((resolve) => {
      this.calls.set(id, resolve);
      this.send({ id, method, ...(params !== undefined && { params }) });
    });
  }

  notify(method: string, params?: unknown): void {
    this.send({ method, ...(params !== undefined && { params }) });
  }

  send(message: unknown): void {
    this.socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  start(
    processId: string,
    argv: readonly string[],
    more: Record<string, unknown> = {},
  ): Promise<unknown> {
    return this.call('process/start', {
      processId,
      argv,
      cwd: 'file:///tmp',
      env: ENV,
      tty: false,
      ...more,
    });
  }

  /** Started through a shell. */
  shell(processId: string, script: string, more: Record<string, unknown> = {}): Promise<unknown> {
    return this.start(processId, ['sh', '-c', script], more);
  }

  async read(processId: string, more: Record<string, unknown> = {}): Promise<ReadResult> {
    return (await this.call('process/read', { processId, ...more })) as ReadResult;
  }

  write(processId: string, text: string, writeId: string): Promise<unknown> {
    const chunk = Buffer.from(text).toString('base64');
    return this.call('process/write', { processId, chunk, writeId });
  }

  of(processId: string): Notification[] {
    return this.notifications.filter(({ params }) => params.processId === processId);
  }

  output(processId: string): string {
    return text(this.of(processId).map(({ params }) => params));
  }

  /** When the condition holds, looked at after each message. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.closed) throw new Error('the connection ended first');
      await new Promise<void>((resolve) => {
        const woken = (): void => {
          this.watchers.delete(woken);
          resolve();
        };
        this.watchers.add(woken);
      });
    }
  }

  untilClosed(processId: string): Promise<void> {
    return this.until(() => this.of(processId).some(({ method }) => method === 'process/closed'));
  }

  untilOutput(processId: string, wanted: string): Promise<void> {
    return this.until(() => this.output(processId).includes(wanted));
  }

  /** Resolves when the server has ended the connection. */
  async dropped(): Promise<void> {
    if (!this.closed)
      await new Promise<void>((resolve) => {
        this.socket.once('close', () => resolve());
      });
  }

  /** Without a close frame, as the real client does. */
  async kill(): Promise<void> {
    this.socket.terminate();
    await this.dropped();
  }

  private received(text: string): void {
    this.raw.push(text);
    const message = JSON.parse(text) as Answer | Notification;
    if ('method' in message) this.notifications.push(message);
    else {
      const { id } = message;
      const call = this.calls.get(id);
      this.calls.delete(id);
      call?.(message);
    }
    this.wake();
  }

  private wake(): void {
    for (const watcher of this.watchers) watcher();
  }
}

export type Answer =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: RpcProblem };

/** The bytes of chunks or notifications, joined. */
export function text(chunks: readonly { readonly chunk?: string }[]): string {
  return Buffer.concat(chunks.map(({ chunk = '' }) => Buffer.from(chunk, 'base64'))).toString();
}
