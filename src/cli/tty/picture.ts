// `tty screenshot`, `record export`: files beside the journal, or where --out says.

import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { systemClock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { Pictures } from '../../screen/pictures.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { terminalFolder } from '../../server/terminals/terminal-folder.ts';
import { recordingFormats, recordTerminal } from '../../server/terminals/recording.ts';
import type { TtyAnswer, TtyCall, TtyCommand } from './command.ts';
import { TtyError } from './envelope.ts';
import { withSession } from './screen-session.ts';
import { findTerminal, type Artifact } from './sessions.ts';

const PROFILES: Readonly<Record<string, string>> = {
  'reference-dark': 'dark',
  'reference-light': 'light',
  dark: 'dark',
  light: 'light',
};

export const screenshot: TtyCommand = {
  name: 'screenshot',
  usage:
    'ID [--profile reference-dark|reference-light] [--show-cursor | --hide-cursor] [--out FILE]',
  summary: 'Paint the screen as PNG.',
  flags: {
    'show-cursor': { type: 'boolean', about: 'with the cursor' },
    'hide-cursor': { type: 'boolean', about: 'without it (default)' },
    scale: { type: 'string', about: '1 to 4' },
    at: { type: 'string', about: 'the screen as it was behind this event' },
    out: { type: 'string', about: 'where to put it' },
  },
  async run(call): Promise<TtyAnswer> {
    const [id = ''] = call.exactly(1);
    const [profileName, theme] = profileOf(call);
    const showCursor = call.flag('show-cursor');
    if (showCursor && call.flag('hide-cursor'))
      throw call.wrong('give either --show-cursor or --hide-cursor');
    const [scale = 1, at] = [call.count('scale'), call.count('at')];
    const process = await findTerminal(call.caller, id);
    const shot = await withSession(call, process, (session) =>
      session.snapshot({ ...(at !== undefined && { at }) }),
    );
    const pictures = new Pictures(systemClock);
    try {
      const { png, width, height } = await pictures.png(shot, { theme, showCursor, scale });
      const file = {
        bytes: png,
        seq: shot.seq,
        kind: 'screenshot',
        name: `screenshot-${shot.seq}-${profileName}.png`,
      } as const;
      const { path, sha256 } = save(call, process, file, { profileName });
      const result = {
        sessionId: process.id,
        capturedAtSeq: shot.seq,
        profileName,
        cols: shot.cols,
        rows: shot.rows,
        artifactPath: path,
        pngSizeBytes: png.length,
        cursorVisible: showCursor,
        rendererBackend: 'holdfast',
        pixelWidth: width,
        pixelHeight: height,
        sha256,
        renderProfileHash: createHash('sha256').update(profileName).digest('hex'),
      };
      return { result, lines: [path] };
    } finally {
      await pictures.close();
    }
  },
};

const TIMINGS = {
  recorded: {},
  accelerated: { idleLimitMs: 400 },
  'max-speed': { idleLimitMs: 16 },
} as const;

export const recordExport: TtyCommand = {
  name: 'record export',
  usage: 'ID --format asciicast|asciicast-v3|events|gif|apng|webm|mp4 [--out FILE]',
  summary: 'Write a recording.',
  flags: {
    format: { type: 'string', about: recordingFormats.join(', ') },
    out: { type: 'string', about: 'where to put it' },
    timing: { type: 'string', about: 'recorded, accelerated (pauses cut to 0.4 s), max-speed' },
    speed: { type: 'string', about: 'so many times as fast' },
    from: { type: 'string', about: 'first event' },
    to: { type: 'string', about: 'last event' },
  },
  async run(call): Promise<TtyAnswer> {
    const [id = ''] = call.exactly(1);
    const format = call.choice('format', recordingFormats);
    if (format === undefined) throw call.wrong('--format is missing');
    const timing = call.choice('timing', ['recorded', 'accelerated', 'max-speed']) ?? 'recorded';
    const [profileName, theme] = profileOf(call);
    const [speed, from, to] = [call.count('speed'), call.count('from'), call.count('to')];
    const process = await findTerminal(call.caller, id);
    const request = {
      format,
      theme,
      ...TIMINGS[timing],
      ...(speed !== undefined && { speed: Math.max(1, speed) }),
      ...(from !== undefined && { from }),
      ...(to !== undefined && { to }),
      onProgress: progress(),
    };
    const file = await withSession(call, process, (session) =>
      recordTerminal(session, request, systemClock),
    ).catch((error: unknown) => {
      if (error instanceof HoldfastError && error.code === 'unsupported')
        throw new TtyError('EXPORT_ERROR', error.message, { cause: error.code });
      throw error;
    });
    const kind = format === 'webm' || format === 'mp4' ? 'video' : 'recording';
    const name = `recording-${process.seq}-${format}.${file.extension}`;
    const metadata = { timing, profileName, rendererBackend: 'holdfast' };
    const saved = save(
      call,
      process,
      { bytes: file.bytes, seq: process.seq, kind, name },
      metadata,
    );
    const result = {
      sessionId: process.id,
      format,
      artifactPath: saved.path,
      bytes: file.bytes.length,
      sha256: saved.sha256,
      capturedAtSeq: process.seq,
      ...(file.durationMs !== undefined && { durationMs: file.durationMs }),
      metadata,
    };
    return { result, lines: [saved.path] };
  },
};

/** On a terminal, a bar on stderr. */
function progress(): (done: number) => void {
  const { stderr } = process;
  let shown = -1;
  return (done) => {
    const percent = Math.floor(Math.min(1, done) * 100);
    if (!stderr.isTTY || percent === shown) return;
    shown = percent;
    const bar = '#'.repeat(Math.floor(percent / 4)).padEnd(25, '.');
    stderr.write(`\r[${bar}] ${percent}%${percent === 100 ? '\n' : ''}`);
  };
}

function profileOf(call: TtyCall): [name: string, theme: string] {
  const name = call.text('profile') ?? (call.caller.env['AGENT_TTY_PROFILE'] || 'reference-dark');
  const theme = PROFILES[name];
  if (name.length > 100 || theme === undefined)
    throw new TtyError('INVALID_INPUT', `There is no profile "${name.slice(0, 100)}".`, {
      profiles: Object.keys(PROFILES),
    });
  return [name, theme];
}

interface NewFile {
  readonly bytes: Buffer;
  readonly seq: number;
  readonly kind: Artifact['kind'];
  readonly name: string;
}

/** The entry is written last: a file without one is no artifact, an entry without its file does not exist. */
function save(
  call: TtyCall,
  process: ProcessInfo,
  file: NewFile,
  metadata: Record<string, unknown>,
): { path: string; sha256: string } {
  const folder = join(terminalFolder(call.caller.home, process), 'artifacts');
  const out = call.text('out');
  const path = out === undefined ? join(folder, file.name) : resolve(call.caller.cwd, out);
  const sha256 = createHash('sha256').update(file.bytes).digest('hex');
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    mkdirSync(dirname(path), { recursive: true });
    place(path, file.bytes);
    const entry: Artifact = {
      id: randomBytes(8).toString('hex'),
      kind: file.kind,
      filename: file.name,
      sessionId: process.id,
      capturedAtSeq: file.seq,
      createdAt: new Date().toISOString(),
      sha256,
      bytes: file.bytes.length,
      metadata,
    };
    try {
      place(join(folder, `${entry.id}.entry.json`), Buffer.from(JSON.stringify(entry)));
    } catch (error) {
      if (out === undefined) rmSync(path, { force: true });
      throw error;
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new TtyError('STORAGE_WRITE_ERROR', `The file cannot be written: ${reason}`, { path });
  }
  return { path, sha256 };
}

function place(path: string, bytes: Buffer): void {
  const next = `${path}.${randomBytes(4).toString('hex')}.tmp`;
  writeFileSync(next, bytes, { mode: 0o600 });
  renameSync(next, path);
}
