// terminal_keys, terminal_wait, terminal_read, terminal_screenshot: keys and screen of a terminal.

import type { ScreenText, ScreenWaitSpec } from '../../client/terminal-api.ts';
import { UNTRUSTED } from '../process/command-answer.ts';
import { joinNotes, notes } from '../notes.ts';
import { durationOf, reportAsFailure, ToolError } from '../tool-errors.ts';
import type { ToolInput } from '../tool-inputs.ts';
import type { ToolOutput } from '../tool-outputs.ts';
import type { ToolCall, ToolContext } from '../tool-context.ts';
import { abandonSignal, nowMs, snapshot, withProgress } from '../process/wait-slices.ts';

type Shown = Omit<ToolOutput<'terminal_read'>, 'success' | 'error' | 'note'>;

const DEFAULT_WAIT_MS = 30_000;
const DEFAULT_REST_MS = 1000;
/** After this long without a change, the program has probably finished drawing. */
const STABLE_MS = 150;

export async function terminalKeys(
  context: ToolContext,
  input: ToolInput<'terminal_keys'>,
  call: ToolCall,
): Promise<ToolOutput<'terminal_keys'>> {
  const { terminal_id: id, text = '', paste = false, keys } = input;
  if (text === '' && keys === undefined) throw new ToolError('text or keys is required');
  const requestedMs = durationOf('wait_timeout', input.wait_timeout, DEFAULT_REST_MS);
  const timeoutMs = Math.ceil(Math.min(requestedMs, call.maxWaitMs ?? Infinity));
  return reportAsFailure('type into terminal', call.signal, async () => {
    const { terminals } = context.api;
    const once = (part: string): { writeId?: string } =>
      call.callId === undefined ? {} : { writeId: `tool-${call.callId}-${part}` };
    let seq = 0;
    if (text !== '') {
      const given = paste ? { paste: text } : { text };
      ({ seq } = await terminals.input(id, { ...given, ...once('text') }));
    }
    if (keys) ({ seq } = await terminals.input(id, { keys, ...once('keys') }));
    const rest = { stableMs: STABLE_MS, afterSeq: seq, timeoutMs };
    const { snapshot: screen } = await terminals.waitForScreen(id, rest, abandonSignal(call));
    return { success: true, ...(await shown(context, id, screen)) };
  });
}

export async function terminalWait(
  context: ToolContext,
  input: ToolInput<'terminal_wait'>,
  call: ToolCall,
): Promise<ToolOutput<'terminal_wait'>> {
  const { terminal_id: id } = input;
  const requestedMs = durationOf('wait_timeout', input.wait_timeout, DEFAULT_WAIT_MS);
  const timeoutMs = Math.ceil(Math.min(requestedMs, call.maxWaitMs ?? Infinity));
  const condition = conditionOf(input);
  return reportAsFailure('wait for terminal', call.signal, async () => {
    const startMs = nowMs(context);
    const waited = await withProgress(context, timeoutMs, call, () =>
      context.api.terminals.waitForScreen(id, { ...condition, timeoutMs }, abandonSignal(call)),
    );
    const { matched, matchedText, nearest, timedOut, ended } = waited;
    return {
      success: matched,
      ...(matchedText !== undefined && { matched_text: matchedText }),
      ...(!matched && nearest && { nearest: nearest.line }),
      ...(timedOut && { timed_out: true }),
      ...(ended && { ended }),
      waited_ms: Math.round(nowMs(context) - startMs),
      ...(await shown(context, id, waited.snapshot)),
      ...joinNotes(timedOut && timeoutMs < requestedMs && notes.capped),
    };
  });
}

function conditionOf(input: ToolInput<'terminal_wait'>): ScreenWaitSpec {
  const { text, pattern, gone, scrolled, stable } = input;
  if (text === undefined && pattern === undefined && stable === undefined)
    throw new ToolError('text, pattern or stable is required');
  if (text !== undefined && pattern !== undefined)
    throw new ToolError('text and pattern cannot be given together');
  return {
    ...(text !== undefined && { text }),
    ...(pattern !== undefined && { regex: pattern }),
    ...(gone === true && { gone }),
    ...(scrolled === true && { where: 'stream' as const }),
    ...(stable !== undefined && { stableMs: Math.round(durationOf('stable', stable, 0)) }),
  };
}

export async function terminalRead(
  context: ToolContext,
  { terminal_id: id, scrollback = false }: ToolInput<'terminal_read'>,
  call: ToolCall,
): Promise<ToolOutput<'terminal_read'>> {
  return reportAsFailure('read terminal', call.signal, async () => {
    const screen = await context.api.terminals.snapshot(id, { scrollback });
    return { success: true, ...(await shown(context, id, screen)) };
  });
}

export async function terminalScreenshot(
  context: ToolContext,
  { terminal_id: id, theme }: ToolInput<'terminal_screenshot'>,
  call: ToolCall,
): Promise<ToolOutput<'terminal_screenshot'>> {
  return reportAsFailure('paint terminal', call.signal, async () => {
    const query = { format: 'png' as const, ...(theme !== undefined && { theme }) };
    const { bytes, missing } = await context.api.terminals.screenshot(id, query);
    return {
      success: true,
      media_type: 'image/png',
      bytes: bytes.length,
      image_base64: bytes.toString('base64'),
      ...joinNotes(missing > 0 && notes.boxes(missing)),
    };
  });
}

/** Without trailing empty lines; if it does not fit, the first lines are dropped. */
export async function shown(context: ToolContext, id: string, screen: ScreenText): Promise<Shown> {
  const { outcome } = await snapshot(context, id);
  const lines = screen.text.split('\n').map((line) => line.trimEnd());
  while (lines.at(-1) === '') lines.pop();
  const first = firstThatFits(lines, context.settings.maxOutputBytes);
  return {
    screen: lines.slice(first).join('\n'),
    output_is: UNTRUSTED,
    ...(first > 0 && { omitted_lines: first }),
    cursor_row: screen.cursorRow,
    cursor_col: screen.cursorCol,
    cols: screen.cols,
    rows: screen.rows,
    running: outcome === undefined,
  };
}

function firstThatFits(lines: readonly string[], maxBytes: number): number {
  let left = maxBytes;
  return (
    lines.findLastIndex((line) => {
      left -= Buffer.byteLength(line) + 1;
      return left < 0;
    }) + 1
  );
}
