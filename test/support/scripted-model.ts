// A model that says what it was told to: an HTTP server on loopback that answers a codex client's turns from a list.

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One turn of the model: a tool to call, or the last word. */
type Turn =
  | { readonly tool: string; readonly args: unknown; readonly namespace?: string }
  | { readonly custom: string; readonly input: string }
  | { readonly say: string };

/** A turn, or one that is made of what the client sent before it. */
export type ScriptedTurn = Turn | ((request: ModelRequest) => Turn | Promise<Turn>);

export interface ModelRequest {
  readonly tools: readonly { readonly type: string; readonly name?: string }[];
  readonly input: readonly {
    readonly type: string;
    readonly call_id?: string;
    readonly output?: unknown;
  }[];
}

export class ScriptedModel {
  readonly requests: ModelRequest[] = [];
  private readonly turns: ScriptedTurn[];
  private readonly server: Server;

  constructor(turns: readonly ScriptedTurn[]) {
    this.turns = [...turns];
    this.server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        if (request.method !== 'POST' || !(request.url ?? '').endsWith('/responses')) {
          response.writeHead(404).end();
          return;
        }
        const body = JSON.parse(Buffer.concat(chunks).toString()) as ModelRequest;
        void this.next(body).then((events) => {
          response.writeHead(200, { 'Content-Type': 'text/event-stream' });
          for (const event of events)
            response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
          response.end();
        });
      });
    });
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => {
      this.server.listen(0, '127.0.0.1', resolve);
    });
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/v1`;
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  /** What the tools answered, in order. */
  get outputs(): string[] {
    const last = this.requests.at(-1);
    return (last?.input ?? [])
      .filter(({ type }) => type === 'function_call_output' || type === 'custom_tool_call_output')
      .map(({ output }) => (typeof output === 'string' ? output : JSON.stringify(output)));
  }

  private async next(request: ModelRequest): Promise<ModelEvent[]> {
    this.requests.push(request);
    const number = this.requests.length;
    const scripted = this.turns.shift() ?? { say: 'nothing left to say' };
    const turn = typeof scripted === 'function' ? await scripted(request) : scripted;
    const id = `resp_${number}`;
    const item = itemOf(turn, number);
    return [
      { type: 'response.created', response: { id } },
      { type: 'response.output_item.done', output_index: 0, item },
      {
        type: 'response.completed',
        response: { id, usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } },
      },
    ];
  }
}

interface ModelEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

function itemOf(turn: Turn, number: number): unknown {
  const call_id = `call_${number}`;
  if ('tool' in turn)
    return {
      type: 'function_call',
      name: turn.tool,
      ...(turn.namespace !== undefined && { namespace: turn.namespace }),
      arguments: JSON.stringify(turn.args),
      call_id,
    };
  if ('custom' in turn)
    return { type: 'custom_tool_call', name: turn.custom, input: turn.input, call_id };
  return {
    type: 'message',
    role: 'assistant',
    id: `msg_${number}`,
    content: [{ type: 'output_text', text: turn.say }],
  };
}
