// The transport of one codex connection: a WebSocket, or the lines of stdin and stdout.

export interface Wire {
  /** Names the source in errors about malformed messages. */
  readonly source: string;
  send(text: string): void;
  /** A buffer for a message of exactly this size, to be filled at once. Only while `batch` runs. */
  allocate(bytes: number): Buffer;
  /** Everything sent meanwhile leaves in one piece. */
  batch(sending: () => void): void;
  /** Undefined: the client can take more output now. Answers are sent in any case. */
  backpressure(): Promise<void> | undefined;
  /** Whether the client is there. Known at once if it was heard recently; otherwise it is pinged. */
  alive(): Promise<boolean>;
  /** While paused, nothing is read from the client: the kernel's buffers fill and the client has to wait. */
  pauseReading(paused: boolean): void;
  /** Ends the connection without a message. */
  drop(): void;
}

export interface WireListener {
  received(text: string): void;
  ended(): void;
}
