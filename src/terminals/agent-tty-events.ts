// A journal as agent-tty's event log: its names and fields, numbered from 0 without holes.

import { constants } from 'node:os';
import { Utf8Stream } from '../base/bytes/utf8.ts';
import type { ProcessEvent } from '../protocol/event.ts';
import type { EventSource } from '../screen/emulator/replica.ts';

interface AgentTtyEvent {
  readonly type: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** Stands for input that the terminal did not echo. */
const REDACTED = '[redacted]';

/** Lines of JSON, each with a line feed. */
export async function* agentTtyEvents(source: EventSource): AsyncGenerator<string> {
  const writer = new EventTranslator();
  for await (const page of source.read(0)) {
    let lines = '';
    for (const event of page) lines += writer.line(event);
    if (lines !== '') yield lines;
  }
}

class EventTranslator {
  private next = 0;
  private readonly text = new Utf8Stream();
  /** The sequence numbers of a run's start: ours to agent-tty's. */
  private readonly runs = new Map<number, number>();

  line(event: ProcessEvent): string {
    const translated = this.translate(event);
    if (!translated) return '';
    const seq = this.next;
    this.next += 1;
    if (translated.type === 'input_run') this.runs.set(event.seq, seq);
    return `${JSON.stringify({ seq, ts: new Date(event.wallMs).toISOString(), ...translated })}\n`;
  }

  private translate(event: ProcessEvent): AgentTtyEvent | undefined {
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

  private note(body: Readonly<Record<string, unknown>>): AgentTtyEvent | undefined {
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

function inputOf(
  body: Extract<ProcessEvent, { kind: 'input' }>['body'],
): AgentTtyEvent | undefined {
  if (body.eof) return undefined;
  if (body.as === 'keys') return { type: 'input_keys', payload: { keys: body.keys ?? [REDACTED] } };
  const data =
    body.data === undefined ? REDACTED : Buffer.from(body.data, 'base64').toString('utf8');
  return { type: body.as === 'paste' ? 'input_paste' : 'input_text', payload: { data } };
}

function exitOf(
  outcome: Extract<ProcessEvent, { kind: 'exited' }>['body']['outcome'],
): AgentTtyEvent['payload'] {
  const code = 'code' in outcome ? (outcome.code ?? null) : null;
  const name = 'signal' in outcome ? outcome.signal : undefined;
  const number = constants.signals[name as NodeJS.Signals] as number | undefined;
  return { exitCode: code, exitSignal: number === undefined ? null : String(number) };
}
