// The toolbox of one caller: takes a call by name, checks it, and returns the answer. A wrong call is a tool error with
// a text.

import * as v from 'valibot';
import { systemClock, type Clock } from '../base/clock.ts';
import { omitUndefined } from '../base/omit-undefined.ts';
import type { Api } from '../client/api.ts';
import { HoldfastError } from '../protocol/errors.ts';
import { inputProblem } from '../protocol/input-problem.ts';
import { CallerCursor } from './caller-cursor.ts';
import { execute } from './process/execute.ts';
import { processList } from './process/list.ts';
import { processOutput } from './process/output.ts';
import { processSearch } from './process/search.ts';
import { processSignal } from './process/signal.ts';
import { processWait } from './process/wait.ts';
import { processWrite } from './process/write.ts';
import { terminalKeys, terminalRead, terminalScreenshot, terminalWait } from './terminal/look.ts';
import { terminalClose, terminalOpen } from './terminal/open.ts';
import { terminalRun } from './terminal/run.ts';
import { ToolError } from './tool-errors.ts';
import { toolInputs, type ToolInput, type ToolName } from './tool-inputs.ts';
import type { ToolOutput } from './tool-outputs.ts';
import type { ToolCall, ToolContext, ToolSettings } from './tool-context.ts';

export interface ToolboxOptions extends Partial<ToolSettings> {
  /** The connection, or a function that makes it on first use. */
  readonly connection?: Api | (() => Promise<Api>) | undefined;
  readonly clock?: Clock;
  /** Called for every process that keeps running in the background. */
  readonly leftRunning?: (id: string) => void;
}

export type ToolAnswer =
  | { readonly isError: false; readonly result: Readonly<Record<string, unknown>> }
  /** The call was wrong, or there is no connection. */
  | { readonly isError: true; readonly text: string };

type Tools = {
  readonly [Name in ToolName]: (
    context: ToolContext,
    input: ToolInput<Name>,
    call: ToolCall,
  ) => Promise<ToolOutput<Name>>;
};

const tools: Tools = {
  execute,
  process_output: processOutput,
  process_list: processList,
  process_signal: processSignal,
  process_wait: processWait,
  process_write: processWrite,
  process_search: processSearch,
  terminal_open: terminalOpen,
  terminal_run: terminalRun,
  terminal_keys: terminalKeys,
  terminal_wait: terminalWait,
  terminal_read: terminalRead,
  terminal_screenshot: terminalScreenshot,
  terminal_close: terminalClose,
};

const DEFAULT_OUTPUT_BYTES = 32_768;
const MIN_OUTPUT_BYTES = 512;
/** Well below the minute after which most clients time out. */
const PROGRESS_EVERY_MS = 5000;
/** Ends terminals that agents forgot, but not overnight. */
const TERMINAL_IDLE_MS = 12 * 3600_000;
const DURATIONS = ['timeout', 'wait_timeout', 'silence', 'stable'];
const LISTS = ['process_ids', 'keys'];
/** Other names that models use for an argument. */
const ALIASES: Readonly<Record<string, string>> = {
  cwd: 'workdir',
  working_directory: 'workdir',
  timeout: 'wait_timeout',
};
/** The system's names of the signals that process_signal takes. */
const SIGNALS: Readonly<Record<string, string>> = {
  TERM: 'terminate',
  SIGTERM: 'terminate',
  KILL: 'kill',
  SIGKILL: 'kill',
};

export class Toolbox {
  private readonly options: ToolboxOptions;
  private readonly cursor = new CallerCursor();
  private readonly settings: ToolSettings;
  private connected: Promise<Api> | undefined;

  constructor(options: ToolboxOptions) {
    this.options = options;
    const { connection: _api, clock: _clock, leftRunning: _left, ...settings } = options;
    const { maxOutputBytes = DEFAULT_OUTPUT_BYTES } = settings;
    this.settings = {
      progressEveryMs: PROGRESS_EVERY_MS,
      terminalIdleMs: TERMINAL_IDLE_MS,
      by: 'tools',
      ...omitUndefined(settings),
      maxOutputBytes: Math.max(MIN_OUTPUT_BYTES, maxOutputBytes),
    };
  }

  async call(name: string, given: unknown, call: ToolCall = {}): Promise<ToolAnswer> {
    try {
      if (!Object.hasOwn(tools, name)) throw new ToolError(`there is no tool "${name}"`);
      const tool = tools[name as ToolName] as Tools['execute'];
      const input = parseInput(name as ToolName, given) as ToolInput<'execute'>;
      const result = await tool(await this.contextOf(call), input, call);
      return { isError: false, result };
    } catch (error) {
      if (error instanceof ToolError) return { isError: true, text: error.message };
      throw error;
    }
  }

  /** The context that the tools of this caller work in. */
  async context(): Promise<ToolContext> {
    const { clock = systemClock, leftRunning = () => undefined } = this.options;
    const { cursor, settings } = this;
    return { api: await this.api(), cursor, clock, settings, leftRunning };
  }

  private async contextOf({ env }: ToolCall): Promise<ToolContext> {
    const context = await this.context();
    if (env === undefined) return context;
    const { settings } = context;
    return { ...context, settings: { ...settings, env: { ...settings.env, ...env } } };
  }

  private async api(): Promise<Api> {
    const { connection } = this.options;
    if (!connection) throw new ToolError('the connection to Holdfast is not configured');
    if (typeof connection !== 'function') return connection;
    try {
      this.connected ??= connection();
      return await this.connected;
    } catch (error) {
      this.connected = undefined;
      throw new ToolError(error instanceof Error ? error.message : String(error));
    }
  }
}

/** The tools as plain functions, for programs with an agent loop of their own. */
export function toolFunctions(
  toolbox: Toolbox,
): Record<ToolName, (input: unknown, call?: ToolCall) => Promise<unknown>> {
  const names = Object.keys(tools) as ToolName[];
  return Object.fromEntries(
    names.map((name) => [
      name,
      async (input: unknown, call?: ToolCall) => {
        const answer = await toolbox.call(name, input, call);
        if (answer.isError) throw new HoldfastError('invalid_input', answer.text);
        return answer.result;
      },
    ]),
  ) as ReturnType<typeof toolFunctions>;
}

function parseInput(name: ToolName, given: unknown): unknown {
  const schema = toolInputs[name];
  const names = Object.keys(schema.entries);
  const input = normalize(typeof given === 'object' && given !== null ? given : {}, names);
  const unknown = Object.keys(input).find((each) => !names.includes(each));
  // Ignoring the argument would run another command than the model meant: in another directory, with another timeout.
  if (unknown !== undefined)
    throw new ToolError(`there is no argument "${unknown}": ${name} takes ${names.join(', ')}`);
  const parsed = v.safeParse(schema, input, { abortEarly: true });
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  const field = v.getDotPath(issue) ?? '';
  const value = input[field];
  if (field === 'signal') throw new ToolError('signal must be "terminate" or "kill"');
  if (value === undefined || value === '') throw new ToolError(`${field} is required`);
  throw new ToolError(`${field} ${inputProblem(issue)}`);
}

/** Accepts other names of an argument or a signal, a number of seconds for a duration, and one word for a list. */
function normalize(given: object, names: readonly string[]): Record<string, unknown> {
  const input: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(given) as [string, unknown][]) {
    const alias = Object.hasOwn(ALIASES, name) ? ALIASES[name] : undefined;
    const isMeant = alias !== undefined && names.includes(alias) && !names.includes(name);
    const canonical = isMeant ? alias : name;
    if (Object.hasOwn(input, canonical) || (canonical !== name && Object.hasOwn(given, canonical)))
      throw new ToolError(`${canonical} is given twice: "${name}" means the same`);
    input[canonical] = plainValue(canonical, value);
  }
  return input;
}

function plainValue(name: string, value: unknown): unknown {
  if (typeof value === 'number' && DURATIONS.includes(name)) return `${value}s`;
  if (typeof value !== 'string') return value;
  if (name === 'signal' && Object.hasOwn(SIGNALS, value)) return SIGNALS[value];
  return LISTS.includes(name) ? [value] : value;
}
