// JSON-RPC as codex speaks it: errors, and the interface of methods. There is no "jsonrpc" member; an error has a code
// and a text that clients compare.

import type { OwnerPolicy } from '../../protocol/confinement/confinement.ts';

/** Sent to the client as it is; any other error of a method becomes `failed`. */
export class RpcError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.name = 'RpcError';
    this.code = code;
  }
}

export const rpcCodes = {
  /** Handshake order, unknown or repeated process, unknown session, malformed frame, refused path. */
  refused: -32600,
  unknownMethod: -32601,
  invalidParams: -32602,
  /** The operating system refused. */
  failed: -32603,
  /** A path that does not exist. */
  notFound: -32004,
  /** The session belongs to a live connection. */
  attachedElsewhere: -32010,
} as const;

/**
 * What a method sees of its connection. A method passes clean-up of longer-lived resources to `onClose`, which runs it
 * once, when the connection has ended.
 */
export interface CodexSession {
  notify(method: string, params: unknown): void;
  /** Before a large notification: undefined, or a promise that resolves when the client has read enough. */
  backpressure(): Promise<void> | undefined;
  /** Returns a function that unregisters the clean-up. */
  onClose(cleanup: () => void): () => void;
  /** Aborts when the connection has ended. */
  readonly gone: AbortSignal;
  /** False for a scoped token: then nothing below `home` may be read, written or named. */
  readonly admin: boolean;
  /** Holdfast's state directory, absolute and without links. */
  readonly home: string;
  /** What the token allows, as of now; undefined for the admin. */
  policy(): OwnerPolicy | undefined;
}

/** `params` is undefined if the client sent none. Resolves to the result, never undefined. */
export type Method = (params: unknown, session: CodexSession) => Promise<unknown>;

/** The word in "client must call initialize before using <family> methods". */
export type MethodFamily =
  | 'exec'
  | 'filesystem'
  | 'http'
  | 'environment info'
  | 'environment config'
  | 'environment status'
  | 'capability discovery';

export type MethodTable = Readonly<Record<string, Method>>;

/** Facts about the server's process, for methods that are not about processes. */
export interface CodexSurroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** The user's home directory. */
  readonly userHome: string;
  readonly version: string;
}
