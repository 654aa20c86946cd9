// `tty snapshot`, `wait`

import type { Condition } from '../../../protocol/operations.ts';
import type { ProcessInfo } from '../../../protocol/process.ts';
import type { ScreenCondition } from '../../../protocol/screen-condition.ts';
import { snapshotOf, textOf } from '../../../screen/view/view.ts';
import { structuredSnapshot, textSnapshot } from '../../../screen/view/snapshot-shape.ts';
import { save } from '../artifact-files.ts';
import type { TtyAnswer, TtyCall, TtyCommand } from '../command.ts';
import { TtyError, WAIT_TIMEOUT_EXIT } from '../envelope.ts';
import { withSession } from '../screen-session.ts';
import { findTerminal, liveTerminal } from '../sessions.ts';

export const snapshot: TtyCommand = {
  name: 'snapshot',
  usage: 'ID [--format structured|text] [--include-scrollback] [--include-cells]',
  summary: 'Show the screen.',
  examples: ['holdfast tty snapshot shell'],
  options: {
    format: { type: 'string', about: 'structured (default) or text' },
    'include-scrollback': { type: 'boolean', about: 'also the lines that have scrolled off' },
    'include-cells': { type: 'boolean', about: 'every cell with its colours and attributes' },
    at: { type: 'string', about: 'the screen as it was after this event' },
  },
  printsText: true,
  async run(call): Promise<TtyAnswer> {
    const [id = ''] = call.expect('ID');
    const format = call.choice('format', ['structured', 'text']) ?? 'structured';
    const [scrollback, cells] = [call.flag('include-scrollback'), call.flag('include-cells')];
    const at = call.count('at');
    const process = await findTerminal(call.caller, id);
    const view = await withSession(call, process, (session) =>
      session.view({ scrollback, ...(at !== undefined && { at }) }),
    );
    const shown = textOf(view);
    const result =
      format === 'text'
        ? textSnapshot(process.id, shown)
        : structuredSnapshot(process.id, snapshotOf(view), { scrollback, cells });
    // agent-tty's scripts look for every snapshot among the artifacts.
    if (call.isPeer) {
      const name = `snapshot-${view.seq}-${format}.json`;
      const bytes = Buffer.from(`${JSON.stringify(result)}\n`);
      save(
        call,
        process,
        { bytes, seq: view.seq, kind: 'snapshot', name },
        {
          format,
          rendererBackend: call.settings.renderers.screen,
        },
      );
    }
    return { result, lines: shown.text.trimEnd().split('\n') };
  },
};

export const wait: TtyCommand = {
  name: 'wait',
  usage:
    'ID (--exit | --idle-ms N | --text T | --regex R | --screen-stable-ms N | --cursor-row N ...)',
  summary: 'Wait for the screen, for silence or for the end.',
  examples: ["holdfast tty wait shell --text 'done'", 'holdfast tty wait shell --idle-ms 500'],
  options: {
    exit: { type: 'boolean', about: 'until its program has exited' },
    'idle-ms': { type: 'string', about: 'until nothing was printed for this long' },
    text: { type: 'string', about: 'until the screen shows this text' },
    regex: { type: 'string', about: 'until the screen matches this' },
    'screen-stable-ms': { type: 'string', about: 'until the screen has not changed for this long' },
    'cursor-row': { type: 'string', about: 'until the cursor is in this row, from 0' },
    'cursor-col': { type: 'string', about: 'and in this column' },
    'after-seq': { type: 'string', about: 'only what is shown after this event counts' },
    stream: { type: 'boolean', about: 'look in what was printed, not only at what is visible' },
    gone: { type: 'boolean', about: 'until it is gone' },
    'changed-from': { type: 'string', about: 'until the screen has another hash than this' },
    timeout: {
      type: 'string',
      about: 'how long to wait at most, in milliseconds or as 30s (600000); 0 for ever',
    },
  },
  printsText: true,
  async run(call): Promise<TtyAnswer> {
    const [id = ''] = call.expect('ID');
    const condition = conditionOf(call);
    const legacy = legacyOf(call);
    if ((legacy === undefined) === (condition === undefined))
      throw legacy
        ? call.wrong(
            'Cannot mix legacy wait flags (--exit, --idle-ms) with conditions on the screen',
          )
        : new TtyError(
            'INVALID_DURATION',
            'wait: give --exit, --idle-ms or conditions on the screen.',
          );
    const timeoutMs = call.durationMs('timeout', 'ms') ?? 600_000;
    const limit = timeoutMs > 0 ? { timeoutMs } : {};
    if (legacy) return waitPlain(call, id, legacy, limit);
    return waitScreen(call, await findTerminal(call.caller, id), condition ?? {}, limit);
  },
};

type Limit = { readonly timeoutMs?: number };

function legacyOf(call: TtyCall): Condition | undefined {
  const idleMs = call.count('idle-ms');
  if (call.flag('exit') && idleMs !== undefined)
    throw call.wrong('Cannot mix --exit with --idle-ms: they are mutually exclusive');
  if (call.flag('exit')) return { kind: 'exit' };
  if (idleMs === undefined) return undefined;
  if (idleMs === 0) throw call.wrong('--idle-ms must be at least 1');
  return { kind: 'silence', forMs: idleMs };
}

function conditionOf(call: TtyCall): ScreenCondition | undefined {
  const [text, regex] = [call.text('text'), call.text('regex')];
  const [stableMs, cursorRow, cursorCol] = [
    call.count('screen-stable-ms'),
    call.count('cursor-row'),
    call.count('cursor-col'),
  ];
  const changedFrom = call.text('changed-from');
  if (text !== undefined && regex !== undefined)
    throw call.wrong('--text and --regex are mutually exclusive');
  if (text === '' || (text?.length ?? 0) > 1000)
    throw call.wrong('--text has 1 to 1000 characters');
  if (regex === '' || (regex?.length ?? 0) > 200)
    throw call.wrong('--regex has 1 to 200 characters');
  if (regex !== undefined) checkPattern(call, regex);
  const condition: ScreenCondition = {
    ...(text !== undefined && { text }),
    ...(regex !== undefined && { regex }),
    ...(stableMs !== undefined && { stableMs }),
    ...(cursorRow !== undefined && { cursorRow }),
    ...(cursorCol !== undefined && { cursorCol }),
    ...(changedFrom !== undefined && { changedFrom }),
  };
  const some = Object.keys(condition).length > 0;
  const more = call.flag('stream') || call.flag('gone') || call.text('after-seq') !== undefined;
  if (!some && more) throw call.wrong('there is no condition on the screen');
  if (!some) return undefined;
  return {
    ...condition,
    ...(call.flag('stream') && { where: 'stream' as const }),
    ...(call.flag('gone') && { gone: true }),
  };
}

/** A repeated group with a repetition inside can take exponential time. */
const NESTED_QUANTIFIER = /\([^()]*[+*}][^()]*\)[+*{]/;

function checkPattern(call: TtyCall, regex: string): void {
  if (NESTED_QUANTIFIER.test(regex)) throw call.wrong('--regex must not have nested quantifiers');
  try {
    RegExp(regex);
  } catch (error) {
    const reason = error instanceof Error ? error.message : '';
    throw call.wrong(`Invalid regex pattern: ${reason}`);
  }
}

/** Silence counts from this call on, not from the last output. */
async function waitPlain(
  call: TtyCall,
  id: string,
  condition: Condition,
  limit: Limit,
): Promise<TtyAnswer> {
  const idle = condition.kind === 'silence';
  const process = await (idle ? liveTerminal(call.caller, id) : findTerminal(call.caller, id));
  const calledMs = performance.now();
  const { timeoutMs } = limit;
  const until = timeoutMs === undefined ? Infinity : calledMs + timeoutMs;
  let since = process.seq;
  for (;;) {
    const left = {
      ...(until < Infinity && { timeoutMs: Math.max(0, Math.round(until - performance.now())) }),
    };
    const ask = (what: Condition, time: Limit) =>
      call.caller.ask((host) =>
        host.wait(process.owner, { waits: [{ id: process.id, for: [what] }], ...time }),
      );
    const { met, timedOut } = await ask(condition, left);
    const [first] = met;
    const early =
      condition.kind === 'silence' ? condition.forMs - (performance.now() - calledMs) : 0;
    if (!timedOut && first?.met === true && early > 0) {
      const quietMs = Math.min(Math.ceil(early), left.timeoutMs ?? Infinity);
      await ask(
        { kind: 'growth', after: (since = Math.max(since, first.after)) },
        { timeoutMs: quietMs },
      );
      continue;
    }
    const outcome = first?.process.outcome;
    const exitCode = outcome && 'code' in outcome ? outcome.code : undefined;
    const result = { timedOut, ...(exitCode !== undefined && { exitCode }) };
    return {
      result,
      lines: [timedOut ? 'timed out' : 'done'],
      exitCode: timedOut ? WAIT_TIMEOUT_EXIT : 0,
    };
  }
}

async function waitScreen(
  call: TtyCall,
  process: ProcessInfo,
  condition: ScreenCondition,
  limit: Limit,
): Promise<TtyAnswer> {
  const afterSeq = call.count('after-seq');
  const found = await withSession(call, process, (session) =>
    session.wait(condition, { ...limit, ...(afterSeq !== undefined && { afterSeq }) }),
  );
  const { matched, timedOut, matchedText, snapshot: shot, nearest } = found;
  const lines = shot.text.split('\n');
  if (!matched && found.ended === true && condition.stableMs === undefined) {
    const details = { sessionId: process.id, visibleLines: lines, condition };
    throw new TtyError(
      'REPLAY_ERROR',
      'The session has ended and its last screen does not match.',
      details,
    );
  }
  const result = {
    matched,
    timedOut,
    ...(matchedText !== undefined && { matchedText }),
    ...(matched && { cursorRow: shot.cursor.row, cursorCol: shot.cursor.col }),
    capturedAtSeq: shot.seq,
    ...(!timedOut && { screenHash: shot.hash }),
    ...(!matched && { condition, visibleLines: lines, ...(nearest && { nearest }) }),
  };
  return {
    result,
    lines: matched ? ['matched'] : `timed out\n${shot.text}`.trimEnd().split('\n'),
    exitCode: timedOut ? WAIT_TIMEOUT_EXIT : 0,
  };
}
