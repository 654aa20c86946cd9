// A terminal's journal as a recording: text for players, or a moving picture.

import type { CancelSignal } from '../base/cancel-signal.ts';
import type { Clock } from '../base/clock.ts';
import type { TerminalSize } from '../protocol/process.ts';
import { agentTtyEvents } from './agent-tty-events.ts';
import type { TerminalSession } from './terminal-session.ts';
import type { Terminals } from './terminals.ts';
import { lazyScreens } from './lazy-screens.ts';

export const recordingFormats = [
  'asciicast',
  'asciicast-v3',
  'events',
  'gif',
  'apng',
  'webm',
  'mp4',
] as const;
type RecordingFormat = (typeof recordingFormats)[number];
type CastFormat = 'asciicast' | 'asciicast-v3' | 'events';
type FilmedFormat = Exclude<RecordingFormat, CastFormat>;

export interface RecordingRequest {
  readonly format: RecordingFormat;
  readonly speed?: number;
  readonly idleLimitMs?: number;
  readonly from?: number;
  readonly to?: number;
  readonly theme?: string;
  readonly scale?: number;
  readonly onProgress?: (done: number) => void;
  readonly signal?: CancelSignal;
}

export interface RecordingFile {
  readonly bytes: Buffer;
  readonly media: string;
  readonly extension: string;
  readonly durationMs?: number;
}

export const recordingKinds: Readonly<
  Record<RecordingFormat, { media: string; extension: string }>
> = {
  asciicast: { media: 'application/x-asciicast', extension: 'cast' },
  'asciicast-v3': { media: 'application/x-asciicast', extension: 'cast' },
  events: { media: 'application/x-ndjson', extension: 'jsonl' },
  gif: { media: 'image/gif', extension: 'gif' },
  apng: { media: 'image/apng', extension: 'png' },
  webm: { media: 'video/webm', extension: 'webm' },
  mp4: { media: 'video/mp4', extension: 'mp4' },
};

type CastRequest = RecordingRequest & { readonly format: CastFormat };

/** Text formats, which are produced line by line. */
export function isCast(request: RecordingRequest): request is CastRequest {
  const { format } = request;
  return format === 'events' || format === 'asciicast' || format === 'asciicast-v3';
}

export async function recordTerminal(
  session: TerminalSession,
  request: RecordingRequest,
  clock: Clock,
  terminals?: Terminals,
): Promise<RecordingFile> {
  const { format } = request;
  const kind = recordingKinds[format];
  if (isCast(request))
    return { ...kind, bytes: await collect(castLines(session, request, terminals)) };
  const { record } = await lazyScreens.recordings();
  const film = { ...request, format: format as FilmedFormat, size: session.firstSize };
  const { bytes, durationMs } = await record(session.source, film, clock);
  return { ...kind, bytes, durationMs };
}

/** Without `terminals`, as in the command line, the first screen is drawn in this thread. */
export async function* castLines(
  session: TerminalSession,
  request: CastRequest,
  terminals?: Terminals,
): AsyncGenerator<string> {
  const { speed, idleLimitMs, from, to, format } = request;
  if (format === 'events') return yield* agentTtyEvents(session.source);
  const [{ asciicast }, process] = await Promise.all([lazyScreens.asciicast(), session.info()]);
  const before =
    from !== undefined && from > 1 ? await repaintAt(session, from - 1, terminals) : undefined;
  yield* asciicast(session.source, {
    version: format === 'asciicast' ? 2 : 3,
    size: before ?? session.firstSize,
    timestamp: Math.floor(process.startedAtMs / 1000),
    title: process.name ?? process.id,
    command: process.command,
    env: { TERM: process.terminal?.term ?? 'xterm-256color' },
    markOf: ({ note, label }) => (note === 'mark' && typeof label === 'string' ? label : undefined),
    ...(before && { before: before.bytes }),
    ...(speed !== undefined && { speed }),
    ...(idleLimitMs !== undefined && { idleLimitMs }),
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
  });
}

async function repaintAt(
  session: TerminalSession,
  at: number,
  terminals: Terminals | undefined,
): Promise<TerminalSize & { readonly bytes: string }> {
  if (terminals)
    return terminals.look(session, { at, behind: true }, async (view, pictures) => {
      const { cols, rows } = view.look;
      return { cols, rows, bytes: await pictures.repaint(view) };
    });
  const { repaint } = await lazyScreens.repaint();
  const shot = await session.snapshot({ at, behind: true });
  return { cols: shot.cols, rows: shot.rows, bytes: repaint(shot) };
}

async function collect(lines: AsyncIterable<string>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const text of lines) parts.push(Buffer.from(text));
  return Buffer.concat(parts);
}
