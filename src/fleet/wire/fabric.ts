// A connection to NATS that is never given up. Nothing is published while it is away: the client would send it later,
// when its time is over.

import {
  headers as newHeaders,
  type Authenticator,
  type ConnectionOptions,
  type Msg,
  type NatsConnection,
  type Status,
  type TlsOptions,
} from '@nats-io/transport-node';
import type { Clock } from '../../base/clock.ts';
import { Cancellation, pause } from '../../protocol/cancellation.ts';
import { Closing } from '../../host/closing.ts';
import { connectNats } from './nats-client.ts';
import { ProblemReport } from './problem-report.ts';

export interface FabricOptions {
  readonly servers: readonly string[];
  /** Of this host or gateway; the server's monitoring shows it. */
  readonly name: string;
  readonly clock: Clock;
  readonly report: (message: string) => void;
  readonly authenticator?: Authenticator | undefined;
  readonly tls?: TlsOptions | undefined;
  /** Returns why a server is not to be used. */
  readonly refuse?: (server: { version: string; address: string }) => string | undefined;
  /** Stay with the given servers, whatever others a server names. */
  readonly onlyGiven?: boolean;
}

export interface Heard {
  readonly subject: string;
  readonly reply: string | undefined;
  readonly bytes: Buffer;
  /** "2/5" of a message in parts. */
  readonly part: string | undefined;
  /** NATS itself says that nobody listens to the subject of a request. */
  readonly nobodyListens: boolean;
}

interface Publishing {
  readonly reply?: string;
  readonly part?: string;
}

const PART = 'Hf-Part';
const NO_RESPONDERS = 503;
const RETRY_MS = 250;
const RETRY_JITTER_MS = 750;

/**
 * The client's defaults give up after ten tries, notice a dead server after minutes, and dial a stopped one for 20 s. With
 * these, a stopped server costs about 4 s.
 */
export function clientOptions(options: FabricOptions): ConnectionOptions {
  const { servers, name, authenticator, tls, onlyGiven = false } = options;
  return {
    servers: [...servers],
    name,
    inboxPrefix: `_hf.i.${name}`,
    maxReconnectAttempts: -1,
    pingInterval: 1000,
    maxPingOut: 2,
    timeout: 1000,
    ignoreAuthErrorAbort: true,
    ignoreClusterUpdates: onlyGiven,
    ...(authenticator && { authenticator }),
    ...(tls && { tls }),
  };
}

function retryMs(): number {
  return RETRY_MS + Math.random() * RETRY_JITTER_MS;
}

export class Fabric {
  private readonly options: FabricOptions;
  private connection: NatsConnection | undefined;
  private isUp = false;
  private readonly end = new Cancellation();
  private readonly problems = new ProblemReport((problem) => {
    if (!this.end.aborted) this.options.report(`NATS: ${problem}`);
  });
  private readonly subscriptions: [subject: string, heard: (message: Heard) => void][] = [];
  private readonly upListeners: (() => void)[] = [];
  private sinceMs: number;
  private readonly done: Promise<void>;

  /** Connects in the background, so that a machine works without its fabric. */
  constructor(options: FabricOptions) {
    this.options = options;
    this.sinceMs = options.clock.wallMs();
    // The caller subscribes first.
    this.done = Promise.resolve().then(() => this.run());
  }

  get connected(): boolean {
    return this.isUp;
  }

  /** Why there is no connection, for a message. */
  get problem(): string {
    const seconds = Math.max(0, Math.round((this.options.clock.wallMs() - this.sinceMs) / 1000));
    const { problem } = this.problems;
    const why = problem === undefined ? '' : ` (${problem})`;
    return `There is no connection to NATS at ${this.options.servers.join(', ')} for ${seconds} s${why}.`;
  }

  /** The connection, while it is there and its server has JetStream. */
  get withJetStream(): NatsConnection | undefined {
    const { connection } = this;
    return this.isUp && connection?.info?.jetstream === true ? connection : undefined;
  }

  /** Called after each connect, when the subscriptions are known to the server. */
  onUp(listener: () => void): void {
    this.upListeners.push(listener);
  }

  /** Before the first connect, so that nothing is missed. */
  subscribe(subject: string, heard: (message: Heard) => void): void {
    this.subscriptions.push([subject, heard]);
  }

  /** False: there is no connection, and the message is not sent. */
  publish(subject: string, bytes: Uint8Array, { reply, part }: Publishing = {}): boolean {
    const { connection } = this;
    if (!connection || !this.isUp || connection.isClosed()) return false;
    if (part === undefined) {
      connection.publish(subject, bytes, reply === undefined ? {} : { reply });
      return true;
    }
    const headers = newHeaders();
    headers.set(PART, part);
    connection.publish(subject, bytes, { headers, ...(reply !== undefined && { reply }) });
    return true;
  }

  /** What was published has reached the server. */
  async flush(): Promise<void> {
    if (this.isUp) await this.connection?.flush().catch(() => undefined);
  }

  /** Completes whatever NATS does: a server that hangs takes nothing and answers nothing. */
  async close(): Promise<void> {
    if (this.end.aborted) return this.done;
    const closing = new Closing(this.options.clock);
    await closing.step('sending the rest', () => this.flush());
    this.end.abort();
    await closing.step('closing the connection', async () => {
      await this.connection?.close();
      await this.done;
    });
  }

  private async run(): Promise<void> {
    while (!this.end.aborted) {
      try {
        await this.use(await connectNats({ ...clientOptions(this.options), ...this.delays() }));
      } catch (error) {
        this.problems.failed(error);
      } finally {
        this.wentDown();
        // It would dial again by itself, beside the next one.
        await this.connection?.close();
        this.connection = undefined;
      }
      await pause(this.options.clock, retryMs(), this.end).catch(() => undefined);
    }
  }

  /** A client that does not connect is asked for a delay before each try: there it ends. */
  private delays(): Pick<ConnectionOptions, 'reconnectDelayHandler'> {
    return {
      reconnectDelayHandler: () => {
        if (this.end.aborted) throw new Error('It is closed.');
        return retryMs();
      },
    };
  }

  private async use(connection: NatsConnection): Promise<void> {
    this.connection = connection;
    if (this.end.aborted) return;
    // Before anything is waited for: a disconnection meanwhile must not be missed.
    const statuses = connection.status();
    for (const [subject, heard] of this.subscriptions)
      connection.subscribe(subject, {
        callback: (error, message) => {
          if (error) this.problems.failed(error);
          else if (!isFromJetStream(message)) heard(heardOf(message));
        },
      });
    void this.cameUp(connection);
    for await (const status of statuses) this.noted(status, connection);
  }

  private noted(status: Status, connection: NatsConnection): void {
    if (status.type === 'disconnect') this.wentDown();
    else if (status.type === 'reconnect') void this.cameUp(connection);
    else if (status.type === 'error') this.problems.failed(status.error);
  }

  private async cameUp(connection: NatsConnection): Promise<void> {
    try {
      const version = connection.info?.version ?? 'unknown';
      const refusal = this.options.refuse?.({ version, address: connection.getServer() });
      if (refusal !== undefined) {
        this.problems.failed(refusal);
        await connection.close();
        return;
      }
      await connection.flush();
    } catch {
      // It is disconnected again, and will come up again.
      return;
    }
    if (connection.isClosed()) return;
    this.isUp = true;
    this.problems.over();
    for (const listener of this.upListeners) listener();
  }

  private wentDown(): void {
    if (!this.isUp) return;
    this.isUp = false;
    this.sinceMs = this.options.clock.wallMs();
  }
}

/**
 * Who asks JetStream chooses where its answer goes, and permissions do not cover that: such an answer would speak for another
 * host. What is asked of JetStream itself comes another way.
 */
function isFromJetStream({ headers, reply = '' }: Msg): boolean {
  const { code = 0 } = headers ?? {};
  const isStored = headers?.has('Nats-Stream') === true || reply.startsWith('$JS.');
  return isStored || (code !== 0 && code !== NO_RESPONDERS);
}

function heardOf(message: Msg): Heard {
  const { data, headers } = message;
  return {
    subject: message.subject,
    reply: message.reply,
    bytes: Buffer.from(data.buffer, data.byteOffset, data.byteLength),
    part: headers?.get(PART) || undefined,
    nobodyListens: headers?.code === NO_RESPONDERS,
  };
}
