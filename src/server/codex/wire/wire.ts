// The wire of one codex connection, whatever carries it: a WebSocket, or the lines of stdin and stdout.

export interface Wire {
  /** What a message from here is called when it is none. */
  readonly source: string;
  send(text: string): void;
  /** Room for a message of exactly so many bytes, to be filled at once. Only while `together` runs. */
  message(bytes: number): Buffer;
  /** What is sent meanwhile leaves in one piece. */
  together(sending: () => void): void;
  /** Undefined: there is room for more output now. Answers stay outside this: they are sent in any case. */
  room(): Promise<void> | undefined;
  /** Whether the other side is there: known at once when it was heard a moment ago, else it is asked. */
  alive(): Promise<boolean>;
  /** While held, nothing more is read from the client: the kernel's buffers fill, and the client has to wait. */
  hold(held: boolean): void;
  /** Ends the connection without a word. */
  drop(): void;
}

export interface WireListener {
  received(text: string): void;
  ended(): void;
}
