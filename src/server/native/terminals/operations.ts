// The native operations on terminals, one row per method and path. A terminal is a process, so /v1/processes also works
// on it.

import * as v from 'valibot';
import { described, optional } from '../../../protocol/schema/described.ts';
import { operations } from '../../../protocol/operations.ts';
import { query } from '../query.ts';
import { answers } from '../shapes.ts';
import { recordingFormats } from '../../../terminals/recording.ts';
import { terminalAnswers } from './shapes.ts';

const count = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(2 ** 48 - 1));
const text = v.pipe(v.string(), v.minLength(1));
const { start, run, runWait, resize, signal, mark, write } = operations;
const theme = optional('dark or light.', v.pipe(v.string(), v.maxLength(100)));
const picture = {
  format: optional('Format of the answer.', v.picklist(['png', 'svg', 'html'])),
  at: optional('The screen as it was after this event.', count),
  theme,
  scale: optional('Pixel scale, 1 to 4.', v.pipe(count, v.minValue(1), v.maxValue(4))),
  showCursor: optional(
    'Whether to paint the cursor (default: as the program shows it).',
    v.boolean(),
  ),
};

export const terminalOperations = {
  openTerminal: {
    method: 'POST',
    path: '/v1/terminals',
    summary: 'Open a terminal',
    about:
      "Without argv: the shell of the server's user. bash, zsh, fish, dash and sh without arguments report the end of each command, so that every run gets its exit code.",
    query: query({}),
    body: v.strictObject({
      argv: start.entries.argv,
      cwd: start.entries.cwd,
      environment: start.entries.environment,
      env: start.entries.env,
      size: start.entries.size,
      term: start.entries.term,
      id: start.entries.id,
      key: start.entries.key,
      name: start.entries.name,
      labels: start.entries.labels,
      lease: start.entries.lease,
      keepMs: start.entries.keepMs,
      hardTimeoutMs: start.entries.hardTimeoutMs,
      idleTimeoutMs: start.entries.idleTimeoutMs,
      marks: start.entries.marks,
    }),
    answer: answers.started,
  },
  listTerminals: {
    method: 'GET',
    path: '/v1/terminals',
    summary: 'List terminals',
    query: query({ state: operations.list.entries.state, name: operations.list.entries.name }),
    answer: answers.processes,
  },
  getTerminal: {
    method: 'GET',
    path: '/v1/terminals/:id',
    summary: 'Get one terminal',
    query: query({}),
    answer: answers.process,
  },
  closeTerminal: {
    method: 'DELETE',
    path: '/v1/terminals/:id',
    summary: 'Close a terminal: stop everything in it and delete it',
    query: query({}),
    answer: answers.nothing,
  },
  runInTerminal: {
    method: 'POST',
    path: '/v1/terminals/:id/run',
    summary: 'Type a command and wait for it to exit',
    about:
      'completion says how the exit was detected: marks, sentinel or unknown. With a name in "run" the call can be repeated: the command is typed once, and every call gets its result. Closing the connection cancels the wait, not the command.',
    query: query({}),
    body: v.strictObject({
      command: run.entries.command,
      run: run.entries.run,
      wait: run.entries.wait,
      timeoutMs: run.entries.timeoutMs,
      completion: run.entries.completion,
    }),
    answer: terminalAnswers.ran,
  },
  waitForRun: {
    method: 'GET',
    path: '/v1/terminals/:id/runs/:run',
    summary: 'Wait for a run that was started earlier',
    query: query({ timeoutMs: runWait.entries.timeoutMs }),
    answer: terminalAnswers.ran,
  },
  terminalInput: {
    method: 'POST',
    path: '/v1/terminals/:id/input',
    summary: 'Type, paste or press keys',
    about:
      'Exactly one of text, base64, paste and keys. A paste is bracketed if the program enabled bracketed paste. Keys are encoded for the terminal modes of the program.',
    query: query({}),
    body: v.strictObject({
      text: optional('Written as UTF-8.', v.string()),
      base64: optional(
        'Bytes as base64, when they are not text.',
        v.pipe(v.string(), v.base64('must be base64')),
      ),
      paste: optional('Text to paste; bracketed if the program enabled it.', text),
      keys: write.entries.keys,
      writeId: write.entries.writeId,
    }),
    answer: answers.written,
  },
  markTerminal: {
    method: 'POST',
    path: '/v1/terminals/:id/mark',
    summary: 'Add a mark to the recording',
    query: query({}),
    body: v.strictObject({ label: mark.entries.label }),
    answer: answers.numbered,
  },
  resizeTerminal: {
    method: 'POST',
    path: '/v1/terminals/:id/resize',
    summary: 'Change the size',
    query: query({}),
    body: v.strictObject({ size: resize.entries.size }),
    answer: answers.numbered,
  },
  signalTerminal: {
    method: 'POST',
    path: '/v1/terminals/:id/signal',
    summary: 'Send a signal to the processes of a terminal',
    query: query({}),
    body: v.strictObject({
      signal: signal.entries.signal,
      reach: signal.entries.reach,
      by: signal.entries.by,
      graceMs: signal.entries.graceMs,
    }),
    answer: answers.signalled,
  },
  waitForScreen: {
    method: 'POST',
    path: '/v1/terminals/:id/wait',
    summary: 'Wait for the screen',
    about:
      'All given conditions must hold together. On timeout the answer has the screen and the nearest match. Waits for output, exit and silence are under /v1/processes.',
    query: query({}),
    body: v.strictObject({
      text: optional('Text that the screen must show.', v.pipe(text, v.maxLength(1000))),
      regex: optional(
        'A regular expression that the screen must match.',
        v.pipe(text, v.maxLength(1000)),
      ),
      where: optional(
        'screen: the visible screen. stream: all output, including scrolled and wrapped text.',
        v.picklist(['screen', 'stream']),
      ),
      gone: optional('true: the text or pattern must be absent.', v.boolean()),
      stableMs: optional('The screen must not have changed for this long.', count),
      cursorRow: optional('The row of the cursor, from 0.', count),
      cursorCol: optional('The column of the cursor, from 0.', count),
      changedFrom: optional('Hash of a screen; the screen must differ from it.', text),
      afterSeq: optional('Consider only what appears after this event.', count),
      timeoutMs: optional('How long this call waits; it ends nothing.', count),
    }),
    answer: terminalAnswers.waited,
  },
  snapshotTerminal: {
    method: 'GET',
    path: '/v1/terminals/:id/snapshot',
    summary: 'Read the screen',
    about: 'Running or exited; with "at": the screen after that event.',
    query: query({
      format: optional('Format of the answer.', v.picklist(['structured', 'text'])),
      scrollback: optional('true: include lines that have scrolled away.', v.boolean()),
      cells: optional('true: return every cell with its colours and attributes.', v.boolean()),
      at: optional('The screen as it was after this event.', count),
    }),
    answer: terminalAnswers.snapshot,
  },
  screenshotTerminal: {
    method: 'GET',
    path: '/v1/terminals/:id/screenshot',
    summary: 'Take a picture of the screen',
    about:
      'PNG by default. The header Holdfast-Seq has the last event of the screen; Holdfast-Missing-Characters counts characters that no font of the server has (shown as empty boxes).',
    query: query(picture),
    media: 'image/png',
  },
  recordTerminal: {
    method: 'GET',
    path: '/v1/terminals/:id/recording',
    summary: 'Export a recording',
    about:
      'asciicast (version 2) by default; webm and mp4 need ffmpeg on the server. Only "events" contains input.',
    query: query({
      format: optional('Format of the answer.', v.picklist(recordingFormats)),
      speed: optional('Playback speed multiplier.', v.pipe(count, v.minValue(1), v.maxValue(1000))),
      idleLimitMs: optional('Maximum pause; longer ones are shortened to this.', count),
      from: optional('The first event of the recording.', count),
      to: optional('The last event of the recording.', count),
      theme,
    }),
    media: 'application/x-asciicast',
  },
  attachTerminal: {
    method: 'GET',
    path: '/v1/terminals/:id/attach',
    summary: 'Attach to a terminal, over a WebSocket',
    about:
      'A GET that asks to become a WebSocket. Without "after" the first message shows the screen; with it everything after that event follows. Binary messages from the server are the number of an event (8 bytes, little-endian) and output; texts are JSON: hello, event, missed, problem, end. Binary messages to the server are typed; texts are JSON: keys, paste, resize, signal. Any other GET is refused.',
    query: query({
      after: optional('Continue after the event with this number.', count),
      at: optional('Begin with the screen as it was after this event.', count),
      readOnly: optional('true: this connection cannot type.', v.boolean()),
    }),
    media: 'application/octet-stream',
  },
  batchTerminal: {
    method: 'POST',
    path: '/v1/terminals/:id/batch',
    summary: 'Do several steps',
    about:
      'Each step is exactly one of {type}, {paste}, {sendKeys: []}, {run, noWait, timeout} and {wait: {text | regex, screenStableMs, cursorRow, cursorCol, timeout}}. All steps are checked before the first one runs; each wait considers only what appears after the input before it.',
    query: query({}),
    body: v.strictObject({
      steps: described(
        'Steps to run, in order.',
        v.pipe(v.array(v.looseObject({})), v.minLength(1), v.maxLength(1000)),
      ),
      keepGoing: optional('true: continue after a failed step.', v.boolean()),
    }),
    answer: terminalAnswers.batch,
  },
} as const;
