// The definitions of the tools for models, and the same in the formats of OpenAI and Anthropic.

import type * as v from 'valibot';
import { jsonSchema, type JsonSchema } from '../protocol/json-schema.ts';
import { toolInputs, type ToolName } from './tool-inputs.ts';
import { toolOutputs } from './tool-outputs.ts';

export type { ToolName };

export interface ToolDefinition {
  readonly name: ToolName;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly outputSchema: JsonSchema;
  readonly annotations: ToolAnnotations;
}

/** Hints for clients that ask their user before some calls. */
interface ToolAnnotations {
  readonly readOnlyHint: boolean;
  readonly destructiveHint: boolean;
  readonly idempotentHint: boolean;
  readonly openWorldHint: boolean;
}

const reads: ToolAnnotations = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
};
const changes: ToolAnnotations = { ...reads, readOnlyHint: false, idempotentHint: false };
const destroys: ToolAnnotations = { ...changes, destructiveHint: true };

const rows: Readonly<
  Record<ToolName, Pick<ToolDefinition, 'title' | 'description' | 'annotations'>>
> = {
  execute: {
    title: 'Run a command',
    description:
      'Run a shell command and wait for it to exit, up to timeout (default 10s). On timeout the command keeps running and the result has background_process_id: continue with process_wait or process_output. If you need the result, set a longer timeout; use run_in_background only for servers, watchers and parallel work. Do not use "&", nohup or sleep loops. All output is stored: a truncated result names the call that fetches the rest.',
    annotations: { ...destroys, openWorldHint: true },
  },
  process_output: {
    title: 'Read output',
    description:
      'Read the output of a background or timed-out process. Waits for its exit first, up to wait_timeout (default 10s), and returns the output so far if it is still running. Set new_only to get only output you have not read. To wait for a text, a port or several processes, use process_wait.',
    annotations: reads,
  },
  process_list: {
    title: 'List processes',
    description: 'List your processes with their status, running ones first.',
    annotations: reads,
  },
  process_signal: {
    title: 'Stop a process',
    description:
      'Stop a process and everything it started. terminate: SIGTERM, then SIGKILL after a grace period. kill: SIGKILL at once. For Ctrl-C use process_write with interrupt.',
    annotations: { ...destroys, idempotentHint: true },
  },
  process_wait: {
    title: 'Wait for processes',
    description:
      'Wait until a process exits (default), prints a text or a line that matches a pattern, listens on a port, or stops printing. For several processes, wait for the first or for all. Returns as soon as it happens, with the output you have not read. Use it instead of polling: for servers, builds and tests.',
    annotations: reads,
  },
  process_write: {
    title: 'Type into a process',
    description:
      'Write to the stdin of a process started with stdin or tty, close stdin, or press Ctrl-C. Returns what the process prints next.',
    annotations: { ...destroys, openWorldHint: true },
  },
  process_search: {
    title: 'Search output',
    description:
      'Search all output of a process and return matching lines with context. Cheaper than reading long output.',
    annotations: reads,
  },
  terminal_open: {
    title: 'Open a terminal',
    description:
      'Open a terminal with a shell (default) that keeps its directory and variables, or with an interactive program (editor, debugger, REPL, menu). For plain commands use execute. Close it with terminal_close.',
    annotations: { ...destroys, openWorldHint: true },
  },
  terminal_run: {
    title: 'Run in a terminal',
    description:
      "Run a command in the shell of a terminal and wait for it to exit, up to timeout (default 10s). Returns its output, its exit code and the shell's directory. On timeout the command keeps running.",
    annotations: { ...destroys, openWorldHint: true },
  },
  terminal_keys: {
    title: 'Press keys',
    description:
      'Type text, press keys, or both, in a terminal. Returns the screen once it stops changing. For editors, menus, REPLs, prompts and passwords.',
    annotations: { ...destroys, openWorldHint: true },
  },
  terminal_wait: {
    title: 'Wait for a screen',
    description:
      'Wait until the screen of a terminal shows a text or pattern, no longer shows it (gone), or stops changing (stable). Returns the screen, also on timeout. Use it instead of polling.',
    annotations: reads,
  },
  terminal_read: {
    title: 'Read a screen',
    description: 'Read the screen of a terminal as text, also after its program has exited.',
    annotations: reads,
  },
  terminal_screenshot: {
    title: 'Screenshot of a terminal',
    description:
      'Take a picture of the screen of a terminal, when colors or layout matter. terminal_read is cheaper.',
    annotations: reads,
  },
  terminal_close: {
    title: 'Close a terminal',
    description: 'Close a terminal: stop everything that runs in it and delete its output.',
    annotations: { ...destroys, idempotentHint: true },
  },
};

export const toolDefinitions: readonly ToolDefinition[] = Object.entries(rows).map(
  ([name, row]) => ({
    name: name as ToolName,
    ...row,
    inputSchema: {
      ...jsonSchema(toolInputs[name as ToolName] as v.GenericSchema),
      additionalProperties: false,
    },
    outputSchema: jsonSchema(toolOutputs[name as ToolName] as v.GenericSchema),
  }),
);

/** For `tools` of OpenAI's chat completions. */
export function openAiTools(): {
  type: 'function';
  function: { name: string; description: string; parameters: JsonSchema };
}[] {
  return toolDefinitions.map(({ name, description, inputSchema: parameters }) => {
    return { type: 'function', function: { name, description, parameters } };
  });
}

/** For `tools` of OpenAI's responses. */
export function openAiResponsesTools(): {
  type: 'function';
  name: string;
  description: string;
  parameters: JsonSchema;
  strict: false;
}[] {
  return toolDefinitions.map(({ name, description, inputSchema: parameters }) => {
    return { type: 'function', name, description, parameters, strict: false };
  });
}

/** For `tools` of Anthropic's messages. */
export function anthropicTools(): {
  name: string;
  description: string;
  input_schema: JsonSchema;
}[] {
  return toolDefinitions.map(({ name, description, inputSchema }) => {
    return { name, description, input_schema: inputSchema };
  });
}
