// A journal as agent-tty's event log: its names and fields, numbered from 0 without a hole.

import { constants } from 'node:os';
import { Utf8Stream } from '../base/bytes/utf8.ts';
import type { ProcessEvent } from '../protocol/event.ts';
import type { EventSource } from '../screen/emulator/replica.ts';

interface PeerEvent {
  readonly type: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** What was typed where nothing is echoed. */
const REDACTED = '[redacted]';

/** Lines of JSON, each with its line end. */
export async function* agentTtyEvents(source: EventSource): AsyncGenerator<string> {
  const writer = new PeerLog();
  for await (const page of source.read(0)) {
    let lines = '';
    for (const event of page) lines += writer.line(event);
    if (lines !== '') yield lines;
  }
}

class PeerLog {
  private next = 0;
  private readonly text = new Utf8Stream();
  /** Our number of a run's start to theirs. */
  private readonly runs = new Map<number, number>();

  line(event: ProcessEvent): string {
    const told = this.translate(event);
    if (!told) return '';
    const seq = this.next;
    this.next += 1;
    if (told.type === 'input_run') this.runs.set(event.seq, seq);
    return `${JSON.stringify({ seq, ts: new Date(event.wallMs).toISOString(), ...told })}\n`;
  }

  private translate(event: ProcessEvent): PeerEvent | undefined {
    switch (event.kind) {
      case 'output':
        return { type: 'output', payload: { data: this.text.push(event.data) } };
      case 'input':
        return inputOf(event.body);
      case 'resize':
        return { type: 'resize', payload: { ...event.body } };
      case 'signal':
        return { type: 'signal', payload: { signal: event.body.signal } };
      case 'note':
        return this.note(event.body);
      case 'exited':
        return { type: 'exit', payload: exitOf(event.body.outcome) };
      case 'started':
      case 'closed':
      case 'gap':
        return undefined;
    }
  }

  private note(body: Readonly<Record<string, unknown>>): PeerEvent | undefined {
    const { note, run, command = REDACTED, noWait = false, startSeq, label } = body;
    if (note === 'mark') return { type: 'marker', payload: { label } };
    if (note === 'run')
      return {
        type: 'input_run',
        payload: { command, noWait, ...(noWait !== true && { marker: run }) },
      };
    if (note !== 'runEnd') return undefined;
    const inputRunSeq = this.runs.get(Number(startSeq));
    return {
      type: 'run_complete',
      payload: { marker: run, ...(inputRunSeq !== undefined && { inputRunSeq }) },
    };
  }
}

function inputOf(body: Extract<ProcessEvent, { kind: 'input' }>['body']): PeerEvent | undefined {
  if (body.eof) return undefined;
  if (body.as === 'keys') return { type: 'input_keys', payload: { keys: body.keys ?? [REDACTED] } };
  const data =
    body.data === undefined ? REDACTED : Buffer.from(body.data, 'base64').toString('utf8');
  return { type: body.as === 'paste' ? 'input_paste' : 'input_text', payload: { data } };
}

function exitOf(
  outcome: Extract<ProcessEvent, { kind: 'exited' }>['body']['outcome'],
): PeerEvent['payload'] {
  const code = 'code' in outcome ? (outcome.code ?? null) : null;
  const name = 'signal' in outcome ? outcome.signal : undefined;
  const number = constants.signals[name as NodeJS.Signals] as number | undefined;
  return { exitCode: code, exitSignal: number === undefined ? null : String(number) };
}
