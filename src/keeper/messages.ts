// The messages on the keeper's socket. The version counts changes of the framing and of these messages; a new operation
// needs no new version, because the welcome lists the operations.

import type { ErrorShape } from '../protocol/errors.ts';
import type { CallerOrigin, Owner } from '../protocol/host-api.ts';
import type { OperationName } from '../protocol/operations.ts';

export const PROTOCOL_VERSION = 1;

/** The keeper's first message on a connection. */
export interface Welcome {
  readonly welcome: {
    readonly protocol: number;
    readonly version: string;
    readonly pid: number;
    readonly operations: readonly string[];
    /** This keeper started the client, or what it came from: it speaks for that process's owner, or for nobody. */
    readonly scope?: CallerOrigin;
    /** This keeper starts its server again when it ends; "serve" answers with the next one. */
    readonly supervises?: boolean;
  };
}

export interface Request {
  readonly id: number;
  /**
   * An operation of the host; "deliver": answer a caller on its own connection; "origin": say whether a program came from
   * a process of this keeper; "ping": show that the keeper is alive; "serve": start a server; "stop": end every process,
   * report what could not be ended, and exit.
   */
  readonly op: OperationName | 'deliver' | 'origin' | 'ping' | 'serve' | 'stop';
  readonly owner: Owner;
  readonly params: unknown;
  /** The caller can read the keeper's files: a large page may be answered with its extent. */
  readonly near?: boolean;
}

export interface StopParams {
  /** Between SIGTERM and SIGKILL; by default the keeper's limit. */
  readonly graceMs?: number;
}

export interface OriginParams {
  /** The caller holds a pidfd of it, so that the pid is not reused. */
  readonly pid: number;
}

/** The caller no longer waits for the answer to a request. */
export interface Cancel {
  readonly cancel: number;
}

export type Answer =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: ErrorShape };
