// Which running processes need a person, and why. The host looks when a client asks; it polls for no one.

import { stripAnsi } from '../../base/bytes/ansi.ts';
import type { Need, NeedReason } from '../../protocol/dashboard/attention.ts';
import type { Params } from '../../protocol/operations.ts';
import { blockedReadOf, childrenOf, isShortage, readEntry } from '../../system/proc-table.ts';
import { shortFacts } from '../process/facts.ts';
import type { HeldProcess } from '../process/held-process.ts';
import { lastLines } from '../process/views.ts';
import { foregroundOf } from '../terminal/foreground.ts';

interface Found {
  readonly process: HeldProcess;
  readonly reason: NeedReason;
  readonly atMs: number;
  readonly text?: string;
}

const MOST_NEEDS = 200;
/** Terminals whose programs are looked at in one call; the newest first. */
const MOST_LOOKED = 256;
/** A program that has just printed may be about to print more. */
const SETTLED_MS = 300;
const TAIL_BYTES = 1024;
const MOST_CHARS = 140;
const TERMINAL = /^\/dev\/(?:pts\/\d+|tty)/;

export class Needs {
  /** The newest event when a person last looked. */
  private readonly dismissed = new WeakMap<HeldProcess, number>();

  /** The oldest first. */
  async find(
    processes: readonly HeldProcess[],
    { quietMs }: Params<'attention'>,
  ): Promise<readonly Need[]> {
    let looked = 0;
    const found: Found[] = [];
    for (const process of processes) {
      const atMs = process.lastOutputAtMs ?? process.facts.startedAtMs;
      const asked = process.tty?.asked;
      if (asked) {
        found.push({ process, reason: 'asked', ...asked });
        continue;
      }
      if (process.journal.visibleSeq <= (this.dismissed.get(process) ?? 0)) continue;
      if (looked < MOST_LOOKED && process.quietMs() >= SETTLED_MS && isTerminal(process)) {
        looked += 1;
        if (readsTerminal(process)) found.push({ process, reason: 'reads', atMs });
      }
      const isFound = found.at(-1)?.process === process;
      if (!isFound && quietMs !== undefined && process.quietMs() >= quietMs)
        found.push({ process, reason: 'quiet', atMs });
    }
    const oldest = found.sort((a, b) => a.atMs - b.atMs).slice(0, MOST_NEEDS);
    return Promise.all(oldest.map(needOf));
  }

  /** What it needs until now is dealt with. */
  dismiss(process: HeldProcess): Record<string, never> {
    if (process.tty) process.tty.asked = undefined;
    this.dismissed.set(process, process.journal.visibleSeq);
    return {};
  }
}

function isTerminal({ facts }: HeldProcess): boolean {
  return facts.streams === 'pty';
}

/** A shell at its prompt waits for nobody in particular. */
function readsTerminal(process: HeldProcess): boolean {
  try {
    const reader = foregroundOf(() => process.foreground());
    if (reader.kind === 'unseen' || reader.kind === 'shell') return false;
    const group = readEntry(reader.pid)?.group;
    const members = [
      reader.pid,
      ...childrenOf(reader.pid).filter((pid) => readEntry(pid)?.group === group),
    ];
    return members.some((pid) => TERMINAL.test(blockedReadOf(pid) ?? ''));
  } catch (error) {
    // No free descriptor: that says nothing about the program.
    if (isShortage(error)) return false;
    throw error;
  }
}

async function needOf({ process, reason, atMs, text }: Found): Promise<Need> {
  const { labels: _labels, ...facts } = shortFacts(process.facts);
  const said = text === undefined || text === '' ? await lastLine(process) : text;
  return { ...facts, reason, atMs, text: said.slice(0, MOST_CHARS) };
}

async function lastLine({ journal }: HeldProcess): Promise<string> {
  // A process that is removed meanwhile has no last line.
  const tail = await lastLines(journal, TAIL_BYTES).catch(() => '');
  const lines = stripAnsi(tail)
    .split(/[\r\n]+/)
    .map((line) => line.replace(/\p{Cc}/gu, '').trim());
  return lines.findLast((line) => line !== '') ?? '';
}
