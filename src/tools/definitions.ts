// The tools as a model is told of them: one row each, and the same rows in the shapes of the two big APIs.

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
      'Run a shell command and wait for its end, up to the timeout. A timeout ends nothing: the answer then has background_process_id, with which process_wait and process_output go on. When you need the result, prefer a longer timeout to the background; use run_in_background for servers, watchers and work to be done in parallel. Never use "&", nohup or sleep loops. Output is kept whole: a shortened answer names the call that shows the rest.',
    annotations: { ...destroys, openWorldHint: true },
  },
  process_output: {
    title: 'Read output',
    description:
      'Read what a background or timed-out process has printed. Waits for its end first, up to wait_timeout, and answers with the output so far if it is still running. new_only gives only what you have not read yet. To wait for a text, a port or several processes use process_wait.',
    annotations: reads,
  },
  process_list: {
    title: 'List processes',
    description: 'List your processes, running ones first, and how they stand.',
    annotations: reads,
  },
  process_signal: {
    title: 'End a process',
    description:
      'End a process and everything it started. "terminate" sends SIGTERM and, if that is not heeded, SIGKILL; "kill" sends SIGKILL at once. To press Ctrl-C use process_write.',
    annotations: { ...destroys, idempotentHint: true },
  },
  process_wait: {
    title: 'Wait for processes',
    description:
      'Wait until a process ends, prints a text or a line that matches a pattern, listens on a port, or falls silent; the first of several processes or all of them. Answers at once when it happens, with the output you have not read yet. One call instead of many looks: use it after starting a server, for a build, for tests.',
    annotations: reads,
  },
  process_write: {
    title: 'Type into a process',
    description:
      'Write to the stdin of a process started with stdin or tty, close it, or press Ctrl-C; answers with what it prints next.',
    annotations: { ...destroys, openWorldHint: true },
  },
  process_search: {
    title: 'Search output',
    description:
      'Find lines in everything a process has printed, with context, however long the output is. Cheaper than reading it.',
    annotations: reads,
  },
  terminal_open: {
    title: 'Open a terminal',
    description:
      'Open a terminal with a shell that keeps its directory and variables, or with a full-screen program (editor, debugger, REPL, menu). For plain commands execute is simpler. Close it with terminal_close when you are done.',
    annotations: { ...destroys, openWorldHint: true },
  },
  terminal_run: {
    title: 'Run in a terminal',
    description:
      'Type a command at the shell of a terminal and wait for its end: answers with its own output, its exit code and the directory afterwards. A timeout ends nothing.',
    annotations: { ...destroys, openWorldHint: true },
  },
  terminal_keys: {
    title: 'Press keys',
    description:
      'Type a text, press keys, or both, in a terminal, and see the screen when it has come to rest. For editors, menus, REPLs, questions and passwords.',
    annotations: { ...destroys, openWorldHint: true },
  },
  terminal_wait: {
    title: 'Wait for a screen',
    description:
      'Wait until the screen of a terminal shows a text or a pattern, no longer shows it, or has come to rest; answers with the screen, also when the time is over. Instead of looking again and again.',
    annotations: reads,
  },
  terminal_read: {
    title: 'Read a screen',
    description: 'The screen of a terminal as text, now or after its program has ended.',
    annotations: reads,
  },
  terminal_screenshot: {
    title: 'Picture of a screen',
    description:
      'The screen of a terminal as a picture, when colours and layout matter. Text is cheaper: terminal_read.',
    annotations: reads,
  },
  terminal_close: {
    title: 'Close a terminal',
    description: 'End a terminal and everything that runs in it, and forget it.',
    annotations: { ...destroys, idempotentHint: true },
  },
};

export const toolDefinitions: readonly ToolDefinition[] = Object.entries(rows).map(
  ([name, row]) => ({
    name: name as ToolName,
    ...row,
    inputSchema: jsonSchema(toolInputs[name as ToolName] as v.GenericSchema),
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
