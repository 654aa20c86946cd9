// Tasks of the revision of 2026: an `execute` that takes long becomes a task, if the request says that its client knows
// tasks. Nothing of a task is stored. Its id is a signed description of the wait, so any later server can answer.

import { createHmac, timingSafeEqual } from 'node:crypto';
import type { CallToolResult, Server, ServerContext } from '@modelcontextprotocol/server';
import * as v from 'valibot';
import { HoldfastError } from '../../protocol/errors.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { settled } from '../process/command-answer.ts';
import { foregroundAnswer, timeoutOf } from '../process/execute.ts';
import { formatDuration } from '../duration.ts';
import type { ToolCall, ToolContext } from '../tool-context.ts';
import type { Toolbox } from '../toolbox.ts';

type Sdk = typeof import('@modelcontextprotocol/server');
type Result = Readonly<Record<string, unknown>>;

export const TASKS = 'io.modelcontextprotocol/tasks';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const PREFIX = 'hft_';
/** Shorter commands take one round trip. */
const PLAIN_MS = 2000;
/** `tasks/get` is answered after this long, or at once when the task ends. */
const HELD_MS = 500;
const CANCELLED_BY = 'mcp task cancel';
/** How many events before the end of a process its cancellation is looked for. */
const LOOKED_BACK = 100;
const MISSING_CAPABILITY = -32021;
const INVALID_PARAMS = -32602;

const wait = v.object({
  v: v.literal(1),
  id: v.string(),
  deadlineMs: v.number(),
  timeoutMs: v.number(),
});
type TaskWait = v.InferOutput<typeof wait>;

const target = v.object({ taskId: v.string() });

interface McpTasksOptions {
  readonly key: () => string;
  readonly owner: string;
  /** The answer of the tool as the plain call would have it. */
  readonly resultOf: (answer: Result) => CallToolResult;
}

export class McpTasks {
  private readonly sdk: Sdk;
  private readonly toolbox: Toolbox;
  private readonly options: McpTasksOptions;

  constructor(sdk: Sdk, toolbox: Toolbox, options: McpTasksOptions) {
    this.sdk = sdk;
    this.toolbox = toolbox;
    this.options = options;
  }

  serve(server: Server): void {
    const schemas = { params: target, result: v.looseObject({}) };
    server.setRequestHandler('tasks/get', schemas, ({ taskId }, context) => {
      this.requireExtension(context);
      return this.get(taskId);
    });
    server.setRequestHandler('tasks/cancel', schemas, ({ taskId }, context) => {
      this.requireExtension(context);
      return this.cancel(taskId);
    });
    server.setRequestHandler('tasks/update', schemas, async ({ taskId }, context) => {
      this.requireExtension(context);
      this.read(taskId);
      return {};
    });
  }

  /** The task or the plain answer; undefined if this call is none that can become a task. */
  async begin(
    params: { readonly name: string; readonly arguments?: Result | undefined },
    context: ServerContext,
    call: ToolCall,
  ): Promise<CallToolResult | undefined> {
    const input = params.arguments ?? {};
    if (params.name !== 'execute' || !knowsTasks(context)) return undefined;
    const { progress: _none, ...quiet } = call;
    const answer = await this.toolbox.call('execute', input, { ...quiet, maxWaitMs: PLAIN_MS });
    if (answer.isError) return undefined;
    const { background_process_id: id, running, backgrounded } = answer.result;
    if (running !== true || backgrounded === true || typeof id !== 'string')
      return this.options.resultOf(answer.result);
    const tools = await this.toolbox.context();
    const process = await tools.api.get(id);
    const timeoutMs = timeoutOf({ timeout: durationText(input['timeout']) });
    const deadlineMs = process.startedAtMs + timeoutMs;
    if (process.outcome || deadlineMs <= tools.clock.wallMs())
      return this.options.resultOf(answer.result);
    const taskId = this.sign({ v: 1, id, deadlineMs, timeoutMs });
    // The library's type of a tool's answer has content; clients of tasks ignore it.
    return { resultType: 'task', content: [], ...describe(taskId, 'working', process, tools) };
  }

  private async get(taskId: string): Promise<Result> {
    const { id, deadlineMs, timeoutMs } = this.read(taskId);
    const tools = await this.toolbox.context();
    const heldMs = Math.max(0, Math.min(HELD_MS, deadlineMs - tools.clock.wallMs()));
    const process = await this.find(tools, id, heldMs);
    const { outcome } = process;
    if (!outcome && tools.clock.wallMs() < deadlineMs)
      return describe(taskId, 'working', process, tools);
    if (await wasCancelled(tools, process)) return describe(taskId, 'cancelled', process, tools);
    const ended = { command: process.command, waitedMs: timeoutMs, capped: false };
    const answer = await foregroundAnswer(tools, await settled(tools, process), ended);
    // As in a plain answer, to which the library adds it.
    const result = { resultType: 'complete', ...this.options.resultOf(answer) };
    return { ...describe(taskId, 'completed', process, tools), result };
  }

  private async cancel(taskId: string): Promise<Result> {
    const { id } = this.read(taskId);
    const { api } = await this.toolbox.context();
    try {
      const { outcome } = await api.get(id);
      if (!outcome) await api.signal({ id, signal: 'terminate', by: CANCELLED_BY });
    } catch (error) {
      const isOver = error instanceof HoldfastError && error.code === 'not_running';
      if (!isOver) throw this.expired(error);
    }
    return {};
  }

  private async find({ api }: ToolContext, id: string, heldMs: number): Promise<ProcessInfo> {
    try {
      const waits = [{ id, for: [{ kind: 'exit' as const }] }];
      const { met } = await api.wait({ waits, timeoutMs: Math.ceil(heldMs) });
      return met[0]?.process ?? (await api.get(id));
    } catch (error) {
      throw this.expired(error);
    }
  }

  private expired(error: unknown): unknown {
    if (!(error instanceof HoldfastError) || error.code !== 'not_found') return error;
    return this.refusal(INVALID_PARAMS, 'Failed to retrieve task: it has expired');
  }

  private sign(described: TaskWait): string {
    const body = Buffer.from(JSON.stringify(described)).toString('base64url');
    return this.idOf(body);
  }

  private read(taskId: string): TaskWait {
    const [body = ''] = taskId.slice(PREFIX.length).split('.');
    const [expected, shown] = [Buffer.from(this.idOf(body)), Buffer.from(taskId)];
    if (expected.length !== shown.length || !timingSafeEqual(expected, shown))
      throw this.refusal(INVALID_PARAMS, 'Failed to retrieve task: Task not found');
    return v.parse(wait, JSON.parse(Buffer.from(body, 'base64url').toString('utf8')));
  }

  /** Its HMAC covers the owner, too: another owner's id is not found. */
  private idOf(body: string): string {
    const { key, owner } = this.options;
    const mac = createHmac('sha256', key()).update(`task ${owner} ${body}`).digest('base64url');
    return `${PREFIX}${body}.${mac}`;
  }

  private requireExtension(context: ServerContext): void {
    if (knowsTasks(context)) return;
    const requiredCapabilities = { extensions: { [TASKS]: {} } };
    throw this.refusal(MISSING_CAPABILITY, 'Missing required client capability', {
      requiredCapabilities,
    });
  }

  private refusal(code: number, message: string, data?: unknown): Error {
    return new this.sdk.ProtocolError(code, message, data);
  }
}

/** A program may handle the signal of a cancellation and exit as it likes: the journal has the signal before the exit. */
async function wasCancelled({ api }: ToolContext, process: ProcessInfo): Promise<boolean> {
  const { id, seq, outcome } = process;
  if (outcome?.kind !== 'exit') return outcome?.kind === 'signal' && outcome.by === CANCELLED_BY;
  for (let after = Math.max(0, seq - LOOKED_BACK); ;) {
    const { events, nextAfter } = await api.events({ id, after });
    for (const event of events) {
      if (event.kind === 'exited') return false;
      if (event.kind === 'signal' && event.body.by === CANCELLED_BY) return true;
    }
    if (nextAfter === after) return false;
    after = nextAfter;
  }
}

function knowsTasks({ mcpReq }: ServerContext): boolean {
  const envelope = mcpReq.envelope as Result | undefined;
  const capabilities = envelope?.[CAPABILITIES] as { extensions?: Result } | undefined;
  return capabilities?.extensions?.[TASKS] !== undefined;
}

function durationText(timeout: unknown): string | undefined {
  if (typeof timeout === 'number') return `${timeout}s`;
  return typeof timeout === 'string' ? timeout : undefined;
}

function describe(
  taskId: string,
  status: 'working' | 'completed' | 'cancelled',
  process: ProcessInfo,
  { clock }: ToolContext,
): Result {
  const { startedAtMs, lastOutputAtMs, exitedAtMs, durationMs, bytes } = process;
  const changedMs = Math.max(startedAtMs, lastOutputAtMs ?? 0, exitedAtMs ?? 0);
  // Of an ended task nothing changes any more.
  const ageMs = (status === 'working' ? clock.wallMs() : changedMs) - startedAtMs;
  const { total } = bytes;
  const last =
    lastOutputAtMs === undefined ? '' : `, last ${agoOf(clock.wallMs() - lastOutputAtMs)}`;
  const words = `running for ${formatDuration(durationMs)}, ${total} bytes printed${last}`;
  return {
    taskId,
    status,
    ...(status === 'working' && { statusMessage: words }),
    createdAt: new Date(startedAtMs).toISOString(),
    lastUpdatedAt: new Date(changedMs).toISOString(),
    ttlMs: null,
    pollIntervalMs: ageMs < 5000 ? 500 : ageMs < 60_000 ? 2000 : 5000,
  };
}

function agoOf(ms: number): string {
  return ms < 1000 ? 'now' : `${formatDuration(ms)} ago`;
}
