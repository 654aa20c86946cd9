// The schemas of the answers about terminals.

import * as v from 'valibot';
import { shape, text, whole } from '../event-shapes.ts';
import type { BatchResult } from '../../../terminals/batch.ts';
import type { ScreenWaited, TerminalRun } from '../../../client/terminal-api.ts';
import type { TextSnapshot } from '../../../protocol/text-snapshot.ts';
import type { SnapshotShape } from '../../../screen/view/snapshot-shape.ts';

const runFields = {
  run: text,
  seq: whole,
  typed: v.boolean(),
  completed: v.boolean(),
  timedOut: v.boolean(),
  completion: v.picklist(['marks', 'sentinel', 'unknown']),
  endSeq: v.exactOptional(whole),
  exitCode: v.exactOptional(whole),
  cwd: v.exactOptional(text),
  durationMs: whole,
  outputFrom: v.exactOptional(whole),
  outputTo: v.exactOptional(whole),
  outputMixed: v.exactOptional(v.literal(true)),
  ended: v.exactOptional(v.literal(true)),
  incomplete: v.exactOptional(v.literal(true)),
  executed: v.exactOptional(v.literal(false)),
  entered: v.exactOptional(text),
  cleared: v.exactOptional(v.literal(true)),
  busyWith: v.exactOptional(text),
};

const line = v.object({ row: whole, text });
const head = {
  sessionId: text,
  capturedAtSeq: whole,
  cols: whole,
  rows: whole,
  cursorRow: whole,
  cursorCol: whole,
  screenHash: text,
};
const structured = v.object({
  ...head,
  format: v.literal('structured'),
  isAltScreen: v.boolean(),
  visibleLines: v.array(line),
  scrollbackLines: v.exactOptional(v.array(line)),
  cells: v.exactOptional(
    v.array(v.object({ lineNumber: whole, cells: v.array(v.looseObject({ char: text })) })),
  ),
  title: text,
  cursor: v.looseObject({ row: whole, col: whole, visible: v.boolean() }),
  modes: v.looseObject({ bracketedPaste: v.boolean(), alternateScreen: v.boolean() }),
  scrollbackCount: whole,
});

const textShape = shape<TextSnapshot>(v.object({ ...head, format: v.literal('text'), text }));
const error = v.looseObject({ code: text, message: text });

const step = v.looseObject({
  index: whole,
  kind: v.picklist(['type', 'paste', 'sendKeys', 'run', 'wait']),
  status: v.picklist(['completed', 'failed', 'not-run', 'interrupted']),
  durationMs: whole,
  error: v.exactOptional(error),
});

export const terminalAnswers = {
  ran: shape<TerminalRun>(
    v.object({
      ...runFields,
      output: v.exactOptional(text),
      truncated: v.exactOptional(v.object({ omittedBytes: whole, totalBytes: whole })),
    }),
  ),
  snapshot: v.variant('format', [
    structured as unknown as v.ObjectSchema<
      { format: v.LiteralSchema<'structured', undefined> },
      undefined
    >,
    textShape as unknown as v.ObjectSchema<
      { format: v.LiteralSchema<'text', undefined> },
      undefined
    >,
  ]) as unknown as v.GenericSchema<SnapshotShape | TextSnapshot>,
  waited: shape<ScreenWaited>(
    v.object({
      matched: v.boolean(),
      timedOut: v.boolean(),
      matchedText: v.exactOptional(text),
      ended: v.exactOptional(v.literal(true)),
      snapshot: textShape,
      nearest: v.exactOptional(v.object({ row: whole, line: text, found: text })),
    }),
  ),
  batch: v.object({
    steps: v.array(step),
    completedCount: whole,
    failedIndices: v.array(whole),
  }) as unknown as v.GenericSchema<BatchResult>,
} as const;
