// terminal_keys, terminal_wait, terminal_read, terminal_screenshot: a terminal as a person at it has it, keys and screen.

import type { ScreenText, ScreenWaitSpec } from '../client/terminal-api.ts';
import { UNTRUSTED } from './command-answer.ts';
import { joinNotes, notes } from './notes.ts';
import { durationOf, softly, ToolError } from './tool-errors.ts';
import type { ToolInput } from './tool-inputs.ts';
import type { ToolOutput } from './tool-outputs.ts';
import type { ToolCall, ToolRoom } from './tool-room.ts';
import { givenUp, nowMs, snapshot, telling } from './waiting.ts';

type Shown = Omit<ToolOutput<'terminal_read'>, 'success' | 'error' | 'note'>;

const DEFAULT_WAIT_MS = 30_000;
const DEFAULT_REST_MS = 1000;
/** So long nothing more: the program has drawn what it wanted to, most likely. */
const STABLE_MS = 150;

export async function terminalKeys(
  room: ToolRoom,
  input: ToolInput<'terminal_keys'>,
  call: ToolCall,
): Promise<ToolOutput<'terminal_keys'>> {
  const { terminal_id: id, text = '', paste = false, keys } = input;
  if (text === '' && keys === undefined) throw new ToolError('text or keys is required');
  const asked = durationOf('wait_timeout', input.wait_timeout, DEFAULT_REST_MS);
  const timeoutMs = Math.ceil(Math.min(asked, call.maxWaitMs ?? Infinity));
  return softly('type into terminal', call.signal, async () => {
    const { terminals } = room.api;
    const once = (part: string): { writeId?: string } =>
      call.callId === undefined ? {} : { writeId: `tool-${call.callId}-${part}` };
    let seq = 0;
    if (text !== '') {
      const given = paste ? { paste: text } : { text };
      ({ seq } = await terminals.input(id, { ...given, ...once('text') }));
    }
    if (keys) ({ seq } = await terminals.input(id, { keys, ...once('keys') }));
    const rest = { stableMs: STABLE_MS, afterSeq: seq, timeoutMs };
    const { snapshot: screen } = await terminals.waitForScreen(id, rest, givenUp(call));
    return { success: true, ...(await shown(room, id, screen)) };
  });
}

export async function terminalWait(
  room: ToolRoom,
  input: ToolInput<'terminal_wait'>,
  call: ToolCall,
): Promise<ToolOutput<'terminal_wait'>> {
  const { terminal_id: id } = input;
  const asked = durationOf('wait_timeout', input.wait_timeout, DEFAULT_WAIT_MS);
  const timeoutMs = Math.ceil(Math.min(asked, call.maxWaitMs ?? Infinity));
  const condition = conditionOf(input);
  return softly('wait for terminal', call.signal, async () => {
    const startMs = nowMs(room);
    const waited = await telling(room, timeoutMs, call, () =>
      room.api.terminals.waitForScreen(id, { ...condition, timeoutMs }, givenUp(call)),
    );
    const { matched, matchedText, nearest, timedOut, ended } = waited;
    return {
      success: matched,
      ...(matchedText !== undefined && { matched_text: matchedText }),
      ...(!matched && nearest && { nearest: nearest.line }),
      ...(timedOut && { timed_out: true }),
      ...(ended && { ended }),
      waited_ms: Math.round(nowMs(room) - startMs),
      ...(await shown(room, id, waited.snapshot)),
      ...joinNotes(timedOut && timeoutMs < asked && notes.capped),
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
  room: ToolRoom,
  { terminal_id: id, scrollback = false }: ToolInput<'terminal_read'>,
  call: ToolCall,
): Promise<ToolOutput<'terminal_read'>> {
  return softly('read terminal', call.signal, async () => {
    const screen = await room.api.terminals.snapshot(id, { scrollback });
    return { success: true, ...(await shown(room, id, screen)) };
  });
}

export async function terminalScreenshot(
  room: ToolRoom,
  { terminal_id: id, theme }: ToolInput<'terminal_screenshot'>,
  call: ToolCall,
): Promise<ToolOutput<'terminal_screenshot'>> {
  return softly('paint terminal', call.signal, async () => {
    const query = { format: 'png' as const, ...(theme !== undefined && { theme }) };
    const picture = await room.api.terminals.screenshot(id, query);
    return {
      success: true,
      media_type: 'image/png',
      bytes: picture.length,
      image_base64: picture.toString('base64'),
    };
  });
}

/** Without empty lines below; the newest part is never cut off. */
async function shown(room: ToolRoom, id: string, screen: ScreenText): Promise<Shown> {
  const { outcome } = await snapshot(room, id);
  const lines = screen.text.split('\n').map((line) => line.trimEnd());
  while (lines.at(-1) === '') lines.pop();
  const first = firstThatFits(lines, room.settings.maxOutputBytes);
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
