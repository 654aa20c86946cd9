// JetStream as the ledger needs it: append behind a known message, read the last one, follow from a number. Loaded only
// where NATS has JetStream.

import {
  jetstream,
  jetstreamManager,
  JetStreamApiCodes,
  JetStreamApiError,
  StorageType,
  type ConsumerMessages,
  type JetStreamClient,
  type JetStreamManager,
  type StreamInfo,
} from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import type { Fabric } from '../wire/fabric.ts';
import {
  describeEpoch,
  LEDGER,
  readEpoch,
  streams,
  type Epoch,
  type StreamName,
} from './streams.ts';

export interface Stored {
  readonly seq: number;
  readonly subject: string;
  readonly bytes: Uint8Array;
}

export interface StreamState {
  readonly epoch: Epoch;
  readonly firstSeq: number;
  readonly lastSeq: number;
}

/** The last message of the subject is not the expected one: nothing was stored. */
export class Refused extends Error {
  /** The last one in truth. */
  readonly seq: number;

  constructor(seq: number) {
    super(`The last message of the subject is ${seq}.`);
    this.seq = seq;
  }
}

const { StreamNotFound, StreamWrongLastSequence, StreamWrongLastSequenceUnknown } =
  JetStreamApiCodes;
const WRONG_LAST_SEQUENCE = new Set<number>([
  StreamWrongLastSequence,
  StreamWrongLastSequenceUnknown,
]);
/** The name is in use with another configuration: another gateway was first. */
const IN_USE = 10058;
const NOT_CLUSTERED = 10074;
const TIMEOUT_MS = 2500;
const REPLICAS = 3;

export class Store {
  private readonly client: JetStreamClient;
  private readonly manager: JetStreamManager;

  private constructor(client: JetStreamClient, manager: JetStreamManager) {
    this.client = client;
    this.manager = manager;
  }

  /** Undefined: there is no connection now, or NATS has no JetStream. */
  static async open(fabric: Fabric): Promise<Store | undefined> {
    const connection = fabric.withJetStream;
    return connection && Store.over(connection);
  }

  static async over(connection: NatsConnection): Promise<Store> {
    const options = { checkAPI: false, timeout: TIMEOUT_MS };
    return new Store(jetstream(connection, options), await jetstreamManager(connection, options));
  }

  /** Undefined: there is no such stream. */
  async state(stream: StreamName): Promise<StreamState | undefined> {
    try {
      return stateOf(await this.manager.streams.info(stream));
    } catch (error) {
      if (codeOf(error) === StreamNotFound) return undefined;
      throw error;
    }
  }

  /** On three servers if NATS is a cluster, else on one. One that is there already stays as it is. */
  async make(stream: StreamName, epoch: Epoch): Promise<void> {
    const config = {
      ...streams[stream],
      name: stream,
      storage: StorageType.File,
      description: describeEpoch(epoch),
    };
    const add = (replicas: number): Promise<unknown> =>
      this.manager.streams.add({ ...config, num_replicas: replicas });
    try {
      await add(REPLICAS).catch((error: unknown) => {
        if (codeOf(error) !== NOT_CLUSTERED) throw error;
        return add(1);
      });
    } catch (error) {
      if (codeOf(error) !== IN_USE) throw error;
    }
  }

  /** `after`: the last message of the subject. Throws `Refused` if it is another one; any other error leaves open what happened. */
  async append(subject: string, bytes: Uint8Array, after: number): Promise<number> {
    try {
      const expect = { lastSubjectSequence: after };
      const { seq } = await this.client.publish(subject, bytes, { expect, timeout: TIMEOUT_MS });
      // Servers of 2.10 say 0 for what they only take for a repetition.
      if (seq > 0) return seq;
    } catch (error) {
      if (!WRONG_LAST_SEQUENCE.has(codeOf(error) ?? 0)) throw error;
      throw new Refused(Number(/(\d+)\s*$/.exec((error as Error).message)?.[1] ?? 0));
    }
    throw new Error('JetStream acknowledged a message without its number.');
  }

  /** From any replica: it may not be the newest yet. */
  async lastNear(stream: StreamName, subject: string): Promise<Stored | undefined> {
    return stored(await this.manager.direct.getMessage(stream, { last_by_subj: subject }));
  }

  /** From the leader. */
  async last(stream: StreamName, subject: string): Promise<Stored | undefined> {
    return stored(await this.manager.streams.getMessage(stream, { last_by_subj: subject }));
  }

  async at(seq: number): Promise<Stored | undefined> {
    return stored(await this.manager.direct.getMessage(LEDGER, { seq }));
  }

  /** The messages of the ledger from this number on, in order. The caller watches that they come. */
  async follow(
    from: number,
    heard: (message: Stored) => void,
    subject?: string,
  ): Promise<ConsumerMessages> {
    const consumer = await this.client.consumers.get(LEDGER, {
      opt_start_seq: from,
      ...(subject !== undefined && { filter_subjects: subject }),
    });
    return consumer.consume({
      max_bytes: 2 * 1024 * 1024,
      expires: 10_000,
      idle_heartbeat: 2000,
      callback: (message) =>
        heard({ seq: message.seq, subject: message.subject, bytes: message.data }),
    });
  }
}

function stateOf({ config, state }: StreamInfo): StreamState {
  const { first_seq: firstSeq, last_seq: lastSeq } = state;
  return { epoch: readEpoch(config.description), firstSeq, lastSeq };
}

function stored(
  message: { seq: number; subject: string; data: Uint8Array } | null,
): Stored | undefined {
  return message ? { seq: message.seq, subject: message.subject, bytes: message.data } : undefined;
}

function codeOf(error: unknown): number | undefined {
  return error instanceof JetStreamApiError ? error.code : undefined;
}
