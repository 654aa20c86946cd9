// The operations on terminals: open, type, run, look, record, close. The native HTTP operations, MCP and the embedded
// SDK all use them and add only their own wire format.

import type { CancelSignal } from '../base/cancel-signal.ts';
import type { Clock } from '../base/clock.ts';
import type { TerminalApi, TerminalRun } from '../client/terminal-api.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { HostApi, Owner } from '../protocol/host-api.ts';
import type { Params } from '../protocol/operations.ts';
import type { RunResult } from '../protocol/run.ts';
import type { PictureOptions, Pictures } from '../screen/picture/pictures.ts';
import { textSnapshot } from '../screen/view/snapshot-shape.ts';
import type { View } from '../screen/view/view.ts';
import { recordingFormats, recordTerminal, type RecordingRequest } from './recording.ts';
import type { TerminalSession } from './terminal-session.ts';
import type { Terminals } from './terminals.ts';

export interface TerminalCallOptions {
  readonly host: HostApi;
  readonly terminals: Terminals;
  readonly clock: Clock;
  /** The shell of the server's user. */
  readonly shell: string;
}

interface Owners {
  /** Whose terminals are visible. */
  readonly sees: Owner;
  /** Who owns new terminals. */
  readonly starts: Owner;
}

export interface InProcessTerminals extends TerminalApi {
  /** Waits for the end of a run that was started earlier. */
  waitForRun(params: Params<'runWait'>, signal?: CancelSignal): Promise<TerminalRun>;
  screenshot(...params: Parameters<TerminalApi['screenshot']>): Promise<Picture>;
  recording(
    id: string,
    request: Omit<RecordingRequest, 'format'> & { readonly format?: string },
  ): Promise<Buffer>;
}

export function inProcessTerminals(
  options: TerminalCallOptions,
  { sees, starts }: Owners,
): InProcessTerminals {
  const { host, terminals, shell } = options;
  const session = (id: string): Promise<TerminalSession> => terminals.open(sees, id);
  return {
    open: async ({ argv = [shell], marks = true, ...spec }) => {
      const started = await host.start(starts, { ...spec, argv, marks, streams: 'pty' });
      await terminals.of(started.process);
      return started;
    },
    run: async ({ id, ...params }, signal) => {
      const opened = await session(id);
      return withOutput(opened, await opened.run(params, signal));
    },
    waitForRun: async ({ id, ...params }, signal) => {
      const opened = await session(id);
      const { owner } = opened;
      return withOutput(opened, await host.runWait(owner, { id: opened.id, ...params }, signal));
    },
    input: async (id, input) => {
      const { text = '', base64, paste, keys, writeId } = input;
      checkOneGiven(input);
      const opened = await session(id);
      if (paste !== undefined) return opened.paste(paste, writeId);
      if (keys !== undefined) return opened.keys(keys, writeId);
      return opened.type(base64 === undefined ? text : Buffer.from(base64, 'base64'), writeId);
    },
    mark: (params) => host.mark(sees, params),
    ...screenCalls(options, session),
    close: async (id) => {
      const process = await host.get(sees, { id });
      const removed = await host.remove(process.owner, { id, force: true });
      await terminals.forget(process);
      return removed;
    },
  };
}

function screenCalls(
  { terminals, clock }: TerminalCallOptions,
  session: (id: string) => Promise<TerminalSession>,
): Pick<InProcessTerminals, 'waitForScreen' | 'snapshot' | 'screenshot' | 'recording'> {
  return {
    waitForScreen: async (id, { timeoutMs, afterSeq, ...condition }, signal) => {
      if (condition.text !== undefined && condition.regex !== undefined)
        throw invalid('"regex": is given together with "text"', { field: 'regex' });
      if (Object.keys(condition).length === 0) throw invalid('There is nothing to wait for.');
      const opened = await session(id);
      const { snapshot, ...waited } = await opened.wait(condition, {
        ...(timeoutMs !== undefined && { timeoutMs }),
        ...(afterSeq !== undefined && { afterSeq }),
        ...(signal && { signal }),
      });
      return { ...waited, snapshot: textSnapshot(opened.id, snapshot) };
    },
    snapshot: async (id, query, signal) => {
      const opened = await session(id);
      const shown = await terminals.look(opened, { ...query, signal }, (view, pictures) =>
        pictures.text(view),
      );
      return textSnapshot(opened.id, shown);
    },
    screenshot: async (id, { format = 'png', at, ...picture }, signal) => {
      const look = { ...(at !== undefined && { at }), signal };
      return terminals.look(await session(id), look, (view, pictures) =>
        paint(format, view, picture, pictures),
      );
    },
    recording: async (id, { format: asked = 'asciicast', ...request }) => {
      const format = recordingFormats.find((each) => each === asked);
      if (!format) throw invalid(`There is no format "${asked}".`);
      const opened = await session(id);
      const { bytes } = await terminals.recordingTurn(opened.owner, request.signal, () =>
        recordTerminal(opened, { format, ...request }, clock, terminals),
      );
      return bytes;
    },
  };
}

function checkOneGiven({ text, base64, paste, keys }: Parameters<TerminalApi['input']>[1]): void {
  const given = [text, base64, paste, keys].filter((each) => each !== undefined);
  if (given.length !== 1)
    throw invalid('Give exactly one of "text", "base64", "paste" and "keys".');
}

function invalid(problem: string, details: Record<string, unknown> = {}): HoldfastError {
  return new HoldfastError('invalid_input', problem, details);
}

interface Picture {
  readonly media: string;
  readonly bytes: Buffer;
  readonly seq: number;
  /** How many different characters no font has. */
  readonly missing: number;
}

async function paint(
  format: 'png' | 'svg' | 'html',
  view: View,
  options: PictureOptions,
  pictures: Pictures,
): Promise<Picture> {
  const { seq } = view;
  if (format === 'png') {
    const { png, missing } = await pictures.png(view, options);
    return { media: 'image/png', bytes: png, seq, missing: missing.length };
  }
  const media = `${format === 'svg' ? 'image/svg+xml' : 'text/html'}; charset=utf-8`;
  return { media, bytes: await pictures.page(view, format, options), seq, missing: 0 };
}

async function withOutput(session: TerminalSession, result: RunResult): Promise<TerminalRun> {
  return { ...result, ...(await session.runOutput(result)) };
}
