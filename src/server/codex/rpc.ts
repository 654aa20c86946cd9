// JSON-RPC as codex speaks it: the errors a method may answer with, and what a method is. There is no "jsonrpc" member;
// an error carries a code, a text that clients compare, and no data of its own accord.

/** Answered to the client as it is; anything else that a method throws becomes `FAILED` with its message. */
export class RpcError extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.name = 'RpcError';
    this.code = code;
    this.data = data;
  }
}

export const rpcCodes = {
  /** Handshake order, unknown or repeated process, unknown session, malformed frame, refused path. */
  refused: -32600,
  unknownMethod: -32601,
  invalidParams: -32602,
  /** The system said no. */
  failed: -32603,
  /** A path that is not there. */
  notFound: -32004,
  /** The session belongs to a connection that is alive. */
  attachedElsewhere: -32010,
} as const;

/**
 * What a method sees of the connection it was called on. Whatever it opens for longer than its own answer it gives to
 * `onClose`: that runs once, when the connection has ended.
 */
export interface CodexSession {
  notify(method: string, params: unknown): void;
  /** Before a large notification: undefined, or when the client has taken enough of what was sent. */
  room(): Promise<void> | undefined;
  /** The answer takes it back, for something that was closed earlier. */
  onClose(cleanup: () => void): () => void;
  /** Aborted when the connection has ended. */
  readonly gone: AbortSignal;
  /** False for a scoped token: then nothing below `home` may be read, written or named. */
  readonly admin: boolean;
  /** The state directory of Holdfast, absolute and without links. */
  readonly home: string;
}

/** `params` is whatever the client sent, undefined when it sent none. Resolves to the result, never undefined. */
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

/** Of the program that serves: what the methods that are not about processes need to know. */
export interface CodexSurroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** The user's own home directory. */
  readonly userHome: string;
  readonly version: string;
}
