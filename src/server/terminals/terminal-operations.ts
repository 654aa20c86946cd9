// The native operations on terminals: one row per method and path, beside those on processes. A terminal is a process,
// so everything that is asked of a process can be asked of it under /v1/processes too.

import * as v from 'valibot';
import { operations } from '../../protocol/operations.ts';
import { answers } from '../native-shapes.ts';
import { recordingFormats } from './recording.ts';
import { terminalAnswers } from './terminal-shapes.ts';

const owner = v.optional(v.string());
const query = <Entries extends v.ObjectEntries>(entries: Entries) =>
  v.strictObject({ ...entries, owner });
const count = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(2 ** 48 - 1));
const text = v.pipe(v.string(), v.minLength(1));
const { start, run, runWait, resize, signal, mark, write } = operations;
const theme = v.optional(v.pipe(v.string(), v.maxLength(100)));
const picture = {
  format: v.optional(v.picklist(['png', 'svg', 'html'])),
  at: v.optional(count),
  theme,
  scale: v.optional(v.pipe(count, v.minValue(1), v.maxValue(4))),
  showCursor: v.optional(v.boolean()),
};

export const terminalOperations = {
  openTerminal: {
    method: 'POST',
    path: '/v1/terminals',
    summary: 'Open a terminal',
    about:
      "Without argv: the shell of the server's user. A bash, zsh, fish, dash or sh that is started plainly is made to mark its commands, so that the end of every run is known.",
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
    summary: 'End a terminal and everything in it, and forget it',
    query: query({}),
    answer: answers.nothing,
  },
  runInTerminal: {
    method: 'POST',
    path: '/v1/terminals/:id/run',
    summary: 'Type a command and wait for its end',
    about:
      'completion says how the end was known: marks, sentinel or unknown. With a name in "run" the same call can be made again: the command is typed once, and the answer is that of the run. Closing the connection gives up the wait, not the command.',
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
    summary: 'Wait for a run that was started before',
    query: query({ timeoutMs: runWait.entries.timeoutMs }),
    answer: terminalAnswers.ran,
  },
  terminalInput: {
    method: 'POST',
    path: '/v1/terminals/:id/input',
    summary: 'Type, paste or press keys',
    about:
      "Exactly one of text, base64, paste and keys. A paste is put in brackets when the program asked for them, and cannot end them itself. Keys are encoded as the program's modes ask.",
    query: query({}),
    body: v.strictObject({
      text: v.optional(v.string()),
      base64: v.optional(v.pipe(v.string(), v.base64('must be base64'))),
      paste: v.optional(text),
      keys: write.entries.keys,
      writeId: write.entries.writeId,
    }),
    answer: answers.written,
  },
  markTerminal: {
    method: 'POST',
    path: '/v1/terminals/:id/mark',
    summary: 'Put a mark into the record',
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
    summary: 'Send a signal to whoever has the terminal',
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
    summary: 'Wait for what the screen shows',
    about:
      'Conditions given together must hold together. On a time-out the answer carries the screen and what came nearest. Waits for output, exit and silence are under /v1/processes.',
    query: query({}),
    body: v.strictObject({
      text: v.optional(v.pipe(text, v.maxLength(1000))),
      regex: v.optional(v.pipe(text, v.maxLength(1000))),
      where: v.optional(v.picklist(['screen', 'stream'])),
      gone: v.optional(v.boolean()),
      stableMs: v.optional(count),
      cursorRow: v.optional(count),
      cursorCol: v.optional(count),
      changedFrom: v.optional(text),
      afterSeq: v.optional(count),
      timeoutMs: v.optional(count),
    }),
    answer: terminalAnswers.waited,
  },
  snapshotTerminal: {
    method: 'GET',
    path: '/v1/terminals/:id/snapshot',
    summary: 'Read the screen',
    about: 'Live or ended; with "at" as it was behind that event.',
    query: query({
      format: v.optional(v.picklist(['structured', 'text'])),
      scrollback: v.optional(v.boolean()),
      cells: v.optional(v.boolean()),
      at: v.optional(count),
    }),
    answer: terminalAnswers.snapshot,
  },
  screenshotTerminal: {
    method: 'GET',
    path: '/v1/terminals/:id/screenshot',
    summary: 'Paint the screen',
    about:
      'PNG unless another format is asked for. The header Holdfast-Seq says behind which event it is.',
    query: query(picture),
    media: 'image/png',
  },
  recordTerminal: {
    method: 'GET',
    path: '/v1/terminals/:id/recording',
    summary: 'Make a recording',
    about:
      'asciicast (version 2) unless another format is asked for; webm and mp4 need ffmpeg on the server. What was typed is in "events" only.',
    query: query({
      format: v.optional(v.picklist(recordingFormats)),
      speed: v.optional(v.pipe(count, v.minValue(1), v.maxValue(1000))),
      idleLimitMs: v.optional(count),
      from: v.optional(count),
      to: v.optional(count),
      theme,
    }),
    media: 'application/x-asciicast',
  },
  attachTerminal: {
    method: 'GET',
    path: '/v1/terminals/:id/attach',
    summary: 'Attach to a terminal, over a WebSocket',
    about:
      'A GET that asks to become a WebSocket. Without "after" the first message shows the screen; with it everything behind that event follows. Binary messages from the server are the number of an event (8 bytes, little-endian) and output; texts are JSON: hello, event, missed, problem, end. Binary messages to the server are typed; texts are JSON: keys, paste, resize, signal. Any other GET is refused.',
    query: query({ after: v.optional(count), readOnly: v.optional(v.boolean()) }),
    media: 'application/octet-stream',
  },
  batchTerminal: {
    method: 'POST',
    path: '/v1/terminals/:id/batch',
    summary: 'Do several steps',
    about:
      'Each step is exactly one of {type}, {paste}, {sendKeys: []}, {run, noWait, timeout} and {wait: {text | regex, screenStableMs, cursorRow, cursorCol, timeout}}. All are checked before the first is done; each wait counts only what is shown behind the input before it.',
    query: query({}),
    body: v.strictObject({
      steps: v.pipe(v.array(v.looseObject({})), v.minLength(1), v.maxLength(1000)),
      keepGoing: v.optional(v.boolean()),
    }),
    answer: terminalAnswers.batch,
  },
} as const;
