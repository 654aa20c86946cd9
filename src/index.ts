// The public surface.

export { Host, type HostOptions } from './host/host.ts';
export { connectKeeper, type ConnectOptions } from './keeper/connect.ts';
export type { KeeperLink } from './keeper/link.ts';
export { errors, HoldfastError, type ErrorCode } from './protocol/errors.ts';
export type { ProcessEvent, Stream } from './protocol/event.ts';
export {
  EVERYONE,
  type Completion,
  type HostApi,
  type Met,
  type Owner,
  type Page,
} from './protocol/host-api.ts';
export { defaultLimits, type Limits } from './protocol/limits.ts';
export type { Condition, StartSpec } from './protocol/operations.ts';
export type { Outcome, ProcessInfo, ProcessState, Usage } from './protocol/process.ts';
export { decodeRecords } from './protocol/record.ts';
export { connect, type ConnectTarget } from './client/connect.ts';
export {
  Holdfast,
  type RunOptions,
  type RunResult,
  type StartDefaults,
  type StartOptions,
  type TerminalOptions,
} from './client/holdfast.ts';
export {
  ProcessHandle,
  type ExitResult,
  type LogChunk,
  type LogOptions,
  type StreamOptions,
  type WaitOptions,
} from './client/process-handle.ts';
export { TerminalHandle, type RunOptions as TerminalRunOptions } from './client/terminal-handle.ts';
export type {
  ScreenshotQuery,
  ScreenText,
  ScreenWaited,
  ScreenWaitSpec,
  TerminalRun,
  TerminalSpec,
} from './client/terminal-api.ts';
export { embed, type EmbedOptions } from './embed.ts';
export { Toolbox, toolFunctions, type ToolAnswer, type ToolboxOptions } from './tools/toolbox.ts';
export type { ToolCall } from './tools/tool-context.ts';
export {
  anthropicTools,
  openAiResponsesTools,
  openAiTools,
  toolDefinitions,
  type ToolDefinition,
  type ToolName,
} from './tools/definitions.ts';
