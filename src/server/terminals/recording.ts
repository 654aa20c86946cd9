// A terminal's journal as a recording: a text that players read, or moving pictures.

import type { Clock } from '../../base/clock.ts';
import { peerEvents } from './peer-events.ts';
import type { TerminalSession } from './terminal-session.ts';

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

export interface RecordingRequest {
  readonly format: RecordingFormat;
  readonly speed?: number;
  readonly idleLimitMs?: number;
  readonly from?: number;
  readonly to?: number;
  readonly theme?: string;
  readonly scale?: number;
  readonly onProgress?: (done: number) => void;
  readonly signal?: AbortSignal;
}

export interface RecordingFile {
  readonly bytes: Buffer;
  readonly media: string;
  readonly extension: string;
  readonly durationMs?: number;
}

const kinds: Readonly<Record<RecordingFormat, { media: string; extension: string }>> = {
  asciicast: { media: 'application/x-asciicast', extension: 'cast' },
  'asciicast-v3': { media: 'application/x-asciicast', extension: 'cast' },
  events: { media: 'application/x-ndjson', extension: 'jsonl' },
  gif: { media: 'image/gif', extension: 'gif' },
  apng: { media: 'image/apng', extension: 'png' },
  webm: { media: 'video/webm', extension: 'webm' },
  mp4: { media: 'video/mp4', extension: 'mp4' },
};

export async function recordTerminal(
  session: TerminalSession,
  request: RecordingRequest,
  clock: Clock,
): Promise<RecordingFile> {
  const { format } = request;
  const kind = kinds[format];
  if (format === 'events') return { ...kind, bytes: await joined(peerEvents(session.source)) };
  if (format === 'asciicast' || format === 'asciicast-v3')
    return { ...kind, bytes: await cast(session, request, format === 'asciicast' ? 2 : 3) };
  const { record } = await import('../../screen/recordings.ts');
  const { bytes, durationMs } = await record(
    session.source,
    { ...request, format, size: session.firstSize },
    clock,
  );
  return { ...kind, bytes, durationMs };
}

async function cast(
  session: TerminalSession,
  { speed, idleLimitMs, from, to }: RecordingRequest,
  version: 2 | 3,
): Promise<Buffer> {
  const { asciicast } = await import('../../screen/asciicast.ts');
  const process = await session.info();
  const before =
    from !== undefined && from > 1 ? await session.snapshot({ at: from - 1 }) : undefined;
  const lines = asciicast(session.source, {
    version,
    size: before ?? session.firstSize,
    timestamp: Math.floor(process.startedAtMs / 1000),
    title: process.name ?? process.id,
    command: process.command,
    env: { TERM: process.terminal?.term ?? 'xterm-256color' },
    markOf: ({ note, label }) => (note === 'mark' && typeof label === 'string' ? label : undefined),
    ...(before && { before }),
    ...(speed !== undefined && { speed }),
    ...(idleLimitMs !== undefined && { idleLimitMs }),
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
  });
  return joined(lines);
}

async function joined(lines: AsyncIterable<string>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const text of lines) parts.push(Buffer.from(text));
  return Buffer.concat(parts);
}
