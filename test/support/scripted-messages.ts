// A model that says what it was told to, for clients of Anthropic's messages: an HTTP server on loopback.

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

type MessageTurn = { readonly tool: string; readonly input: unknown } | { readonly say: string };

interface MessagesRequest {
  readonly model: string;
  readonly tools?: readonly { readonly name: string }[];
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
}

export class ScriptedMessages {
  private readonly turns: MessageTurn[];
  private readonly server: Server;
  private last: MessagesRequest | undefined;

  constructor(turns: readonly MessageTurn[]) {
    this.turns = [...turns];
    this.server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        if (request.method !== 'POST' || !/\/v1\/messages(\?|$)/.test(request.url ?? '')) {
          response.writeHead(404).end();
          return;
        }
        const body = JSON.parse(Buffer.concat(chunks).toString()) as MessagesRequest;
        response.writeHead(200, { 'Content-Type': 'text/event-stream' });
        for (const event of this.next(body))
          response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
        response.end();
      });
    });
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => {
      this.server.listen(0, '127.0.0.1', resolve);
    });
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  /** What the tools answered, in order. */
  get outputs(): string[] {
    const blocks = (this.last?.messages ?? []).flatMap(({ content }) =>
      Array.isArray(content) ? (content as { type: string; content?: unknown }[]) : [],
    );
    return blocks
      .filter(({ type }) => type === 'tool_result')
      .map(({ content }) => (typeof content === 'string' ? content : JSON.stringify(content)));
  }

  private next(request: MessagesRequest): MessageEvent[] {
    const { model, tools = [] } = request;
    // Requests without tools are for titles and the like.
    const isTurn = tools.length > 0;
    if (isTurn) this.last = request;
    const turn = (isTurn && this.turns.shift()) || { say: 'nothing left to say' };
    const id = `${request.messages.length}_${this.turns.length}`;
    const isTool = 'tool' in turn;
    const usage = { input_tokens: 1, output_tokens: 1 };
    const stop = { stop_reason: isTool ? 'tool_use' : 'end_turn', stop_sequence: null };
    return [
      {
        type: 'message_start',
        message: { id, type: 'message', role: 'assistant', model, content: [], usage },
      },
      {
        type: 'content_block_start',
        index: 0,
        content_block: isTool
          ? { type: 'tool_use', id: `toolu_${id}`, name: turn.tool, input: {} }
          : { type: 'text', text: '' },
      },
      {
        type: 'content_block_delta',
        index: 0,
        delta: isTool
          ? { type: 'input_json_delta', partial_json: JSON.stringify(turn.input) }
          : { type: 'text_delta', text: turn.say },
      },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: stop, usage },
      { type: 'message_stop' },
    ];
  }
}

interface MessageEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}
