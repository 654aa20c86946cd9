// Raw HTTP for tests that must send what no HTTP client would: bytes out, answers in, one after the other over a
// connection that is made anew when the server has ended it.

import { connect, type Socket } from 'node:net';

export interface RawAnswer {
  /** 0: the server ended the connection without an answer. */
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
  /** Status lines of interim answers, such as 100. */
  readonly interim: readonly number[];
}

const NOTHING: RawAnswer = { status: 0, headers: new Map(), body: '', interim: [] };

export class RawConnection {
  private readonly port: number;
  private socket: Socket | undefined;
  private received = Buffer.alloc(0);
  private wake: () => void = () => undefined;

  constructor(port: number) {
    this.port = port;
  }

  /** Sends bytes as they are and reads one answer; `head`: it has no body, whatever it says. */
  async ask(bytes: string | Buffer, head = false): Promise<RawAnswer> {
    this.write(bytes);
    return this.answer(head);
  }

  write(bytes: string | Buffer): void {
    this.connection().write(bytes);
  }

  async answer(head = false, interim: readonly number[] = []): Promise<RawAnswer> {
    const socket = this.connection();
    for (;;) {
      const found = takeAnswer(this.received, head);
      if (found) {
        this.received = this.received.subarray(found.end);
        if (found.answer.status < 200) return this.answer(head, [...interim, found.answer.status]);
        if (found.answer.headers.get('connection') === 'close') this.close();
        return { ...found.answer, interim };
      }
      if (socket.destroyed || socket.readableEnded) {
        this.close();
        return { ...NOTHING, interim };
      }
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
  }

  /** When the server has ended the connection. */
  async ended(): Promise<void> {
    while (this.open)
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
  }

  close(): void {
    this.socket?.destroy();
    this.socket = undefined;
    this.received = Buffer.alloc(0);
  }

  private get open(): boolean {
    return this.socket?.destroyed === false && !this.socket.readableEnded;
  }

  private connection(): Socket {
    if (this.socket && this.open) return this.socket;
    this.received = Buffer.alloc(0);
    const socket = connect(this.port, '127.0.0.1');
    socket.setNoDelay(true);
    const woken = (): void => this.wake();
    socket.on('data', (chunk: Buffer) => {
      if (socket === this.socket) this.received = Buffer.concat([this.received, chunk]);
      woken();
    });
    socket.on('error', woken);
    socket.on('end', woken);
    socket.on('close', woken);
    this.socket = socket;
    return socket;
  }
}

function takeAnswer(bytes: Buffer, head: boolean): { answer: RawAnswer; end: number } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const [first = '', ...lines] = bytes.subarray(0, headEnd).toString('latin1').split('\r\n');
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
    }),
  );
  const status = Number(first.split(' ')[1]);
  const length = head || status < 200 ? 0 : Number(headers.get('content-length') ?? 0);
  const end = headEnd + 4 + length;
  if (bytes.length < end) return undefined;
  const body = bytes.subarray(headEnd + 4, end).toString();
  return { answer: { status, headers, body, interim: [] }, end };
}
