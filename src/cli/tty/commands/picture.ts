// `tty screenshot`, `record export`: files beside the journal, or where --out says.

import { createHash } from 'node:crypto';
import { systemClock } from '../../../base/clock.ts';
import { HoldfastError } from '../../../protocol/errors.ts';
import { Pictures } from '../../../screen/picture/pictures.ts';
import { recordingFormats, recordTerminal } from '../../../terminals/recording.ts';
import { quote } from '../../output/terminal-text.ts';
import { save } from '../artifact-files.ts';
import type { TtyAnswer, TtyCall, TtyCommand } from '../command.ts';
import { TtyError } from '../envelope.ts';
import { withSession } from '../screen-session.ts';
import { findTerminal } from '../sessions.ts';

const MOST_NAMED = 20;
/** Characters in the name of a profile. */
const MOST_PROFILE = 100;
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
  examples: ['holdfast tty screenshot shell'],
  options: {
    'show-cursor': { type: 'boolean', about: 'with the cursor' },
    'hide-cursor': { type: 'boolean', about: 'without it (default)' },
    scale: { type: 'string', about: '1 to 4' },
    at: { type: 'string', about: 'the screen as it was after this event' },
    out: { type: 'string', about: 'file to write' },
  },
  async run(call): Promise<TtyAnswer> {
    const [id = ''] = call.expect('ID');
    const [profileName, theme] = profileOf(call);
    const showCursor = call.flag('show-cursor');
    if (showCursor && call.flag('hide-cursor'))
      throw call.wrong('--show-cursor and --hide-cursor are mutually exclusive');
    const [scale = 1, at] = [call.count('scale'), call.count('at')];
    const process = await findTerminal(call.caller, id);
    const shot = await withSession(call, process, (session) =>
      session.view({ ...(at !== undefined && { at }) }),
    );
    const pictures = new Pictures(systemClock);
    try {
      const { png, width, height, missing } = await pictures.png(shot, {
        theme,
        showCursor,
        scale,
      });
      const file = {
        bytes: png,
        seq: shot.seq,
        kind: 'screenshot',
        name: `screenshot-${shot.seq}-${profileName}.png`,
      } as const;
      const { path, sha256 } = save(call, process, file, {
        profileName,
        rendererBackend: call.settings.renderers.picture,
        pngSizeBytes: png.length,
        pixelWidth: width,
        pixelHeight: height,
      });
      const result = {
        sessionId: process.id,
        capturedAtSeq: shot.seq,
        profileName,
        cols: shot.look.cols,
        rows: shot.look.rows,
        artifactPath: path,
        pngSizeBytes: png.length,
        cursorVisible: showCursor,
        rendererBackend: call.settings.renderers.picture,
        pixelWidth: width,
        pixelHeight: height,
        sha256,
        renderProfileHash: createHash('sha256').update(profileName).digest('hex'),
        ...(missing.length > 0 && { missingCharacters: missing.join('') }),
      };
      return { result, lines: [path], ...(missing.length > 0 && { note: boxes(missing) }) };
    } finally {
      await pictures.close();
    }
  },
};

function boxes(missing: readonly string[]): string {
  const some = quote(missing.slice(0, MOST_NAMED).join(''));
  const more = missing.length > MOST_NAMED ? ` and ${missing.length - MOST_NAMED} more` : '';
  return `No font of this machine has ${some}${more}: they are empty boxes. Fonts in /usr/share/fonts are used, as of fonts-noto-cjk.`;
}

const TIMINGS = {
  recorded: {},
  accelerated: { idleLimitMs: 400 },
  'max-speed': { idleLimitMs: 16 },
} as const;

export const recordExport: TtyCommand = {
  name: 'record export',
  usage: 'ID --format asciicast|asciicast-v3|events|gif|apng|webm|mp4 [--out FILE]',
  summary: 'Write a recording.',
  examples: ['holdfast tty record export shell --format gif'],
  options: {
    format: { type: 'string', about: recordingFormats.join(', ') },
    out: { type: 'string', about: 'file to write' },
    timing: { type: 'string', about: 'recorded, accelerated (pauses cut to 0.4 s), max-speed' },
    speed: { type: 'string', about: 'this many times as fast' },
    from: { type: 'string', about: 'first event' },
    to: { type: 'string', about: 'last event' },
  },
  async run(call): Promise<TtyAnswer> {
    const [id = ''] = call.expect('ID');
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
    const metadata = {
      timing,
      timingMode: timing,
      profileName,
      renderProfileHash: createHash('sha256').update(profileName).digest('hex'),
      rendererBackend: call.settings.renderers.picture,
      ...(format === 'asciicast' && castFacts(file.bytes)),
    };
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
      ...durationOf(file.durationMs, metadata),
      metadata,
    };
    return { result, lines: [saved.path] };
  },
};

/** What the file itself says: its header, and how many events of each kind it has. */
function castFacts(bytes: Buffer) {
  const [first = '{}', ...events] = bytes.toString('utf8').trimEnd().split('\n');
  const { width, height, title, timestamp } = JSON.parse(first) as Record<string, unknown>;
  const of = (code: string): number =>
    events.filter((line) => line.includes(`, "${code}", `) || line.includes(`,"${code}",`)).length;
  const seconds = Number.parseFloat(events.at(-1)?.slice(1) ?? '0');
  return {
    width,
    height,
    title,
    timestamp,
    outputEventCount: of('o'),
    resizeEventCount: of('r'),
    markerCount: of('m'),
    durationMs: Math.round(seconds * 1000),
  };
}

function durationOf(
  filmedMs: number | undefined,
  { durationMs = filmedMs }: { readonly durationMs?: number | undefined },
): { readonly durationMs?: number } {
  return durationMs === undefined ? {} : { durationMs };
}

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
  const name = call.text('profile') ?? call.settings.profile;
  if (name.length > MOST_PROFILE)
    throw new TtyError('INVALID_INPUT', 'Screenshot request is invalid.', {
      profile: name,
      longest: MOST_PROFILE,
    });
  const theme = Object.hasOwn(PROFILES, name) ? PROFILES[name] : undefined;
  if (theme === undefined)
    throw new TtyError('INVALID_INPUT', `unknown render profile "${name.slice(0, 100)}"`, {
      profiles: Object.keys(PROFILES),
    });
  return [name, theme];
}
