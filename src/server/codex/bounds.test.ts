// What is bounded towards a codex client: answers with very many chunks, long stretches of missing numbers, messages that
// are too much, and followers that cannot go on. Pages are made of real records; the host hands them out.

import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { systemClock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { eventKinds } from '../../protocol/event.ts';
import type { HostApi, Page } from '../../protocol/host-api.ts';
import { encodeBody, encodeRecord } from '../../protocol/record.ts';
import { follow } from './process/follower.ts';
import { CodexConnection, type CodexOptions } from './connection.ts';
import { parseMessage } from './message.ts';
import { RpcError, rpcCodes } from './rpc.ts';
import { readProcess, type ReadAnswer } from './process/read.ts';
import type { Wire } from './wire/wire.ts';

/** One event of one byte for each number. */
function pageOf(fromSeq: number, toSeq: number, lastSeq: number, after = fromSeq - 1): Page {
  const { stream, payload } = encodeBody({
    kind: 'output',
    stream: 'stdout',
    data: Buffer.from('x'),
  });
  const records = Array.from({ length: toSeq - fromSeq + 1 }, (_, n) => {
    const seq = fromSeq + n;
    const header = { kind: eventKinds.output, stream, seq, offset: seq - 1, atUs: 0, wallMs: 0 };
    return encodeRecord(header, payload);
  });
  return {
    records: Buffer.concat(records),
    nextAfter: toSeq,
    nextOffset: toSeq,
    seq: lastSeq,
    state: 'running',
    end: false,
    uncounted: { before: 0, after, seqs: [], count: lastSeq },
  };
}

/** A host that only reads. */
function reading(read: HostApi['read']): HostApi {
  return { read } as Partial<HostApi> as HostApi;
}

describe('process/read', () => {
  const COUNT = 60_000;
  const host = reading(async (_owner, { after, afterCount = 0 }) => {
    const from = (after ?? afterCount) + 1;
    return pageOf(from, Math.min(from + 9999, COUNT), COUNT);
  });
  const { signal } = new AbortController();
  const read = (afterSeq: number, maxBytes?: number): Promise<ReadAnswer> =>
    readProcess(
      { id: 'p', afterSeq, maxBytes, waitMs: 0 },
      { host, owner: 'o', clock: systemClock, signal },
    );

  it('[CX40] without a limit names the numbers that do not fit', async () => {
    const { chunks, omitted, nextSeq } = await read(0);
    const numbers = new Set(chunks.map(({ seq }) => seq));
    expect([numbers.size, nextSeq]).toEqual([50_000, COUNT + 1]);
    expect(omitted).toEqual([{ fromSeq: 25_001, toSeq: 35_000, bytes: 10_000, retained: true }]);
    for (let seq = 1; seq <= COUNT; seq += 1)
      if (numbers.has(seq) === (seq > 25_000 && seq <= 35_000)) throw new Error(`${seq}`);
  });

  it('[CX40] with a limit goes on where it stopped, and nothing is lost', async () => {
    const first = await read(0, 1_000_000);
    expect([first.chunks.length, first.nextSeq, first.omitted]).toEqual([
      50_000,
      50_001,
      undefined,
    ]);
    const second = await read(first.nextSeq - 1, 1_000_000);
    expect([second.chunks[0]?.seq, second.chunks.length, second.nextSeq]).toEqual([
      50_001,
      10_000,
      COUNT + 1,
    ]);
  });
});

/** A wire that notes what is sent, and when the event loop had a turn in between. */
class Noted implements Wire {
  readonly source = 'test';
  readonly sent: string[] = [];
  /** How many messages were sent in one go. */
  readonly goes: number[] = [];
  dropped = false;

  send(text: string): void {
    this.sent.push(text);
  }
  allocate(bytes: number): Buffer {
    const into = Buffer.alloc(bytes);
    this.sent.push('output');
    return into;
  }
  batch(sending: () => void): void {
    const before = this.sent.length;
    sending();
    this.goes.push(this.sent.length - before);
  }
  backpressure(): undefined {
    return undefined;
  }
  alive(): Promise<boolean> {
    return Promise.resolve(true);
  }
  readonly holds: boolean[] = [];
  pauseReading(held: boolean): void {
    this.holds.push(held);
  }
  drop(): void {
    this.dropped = true;
  }
}

function followed(host: HostApi, wire: Wire, clock = systemClock): Parameters<typeof follow>[0] {
  const { signal } = new AbortController();
  return { host, clock, wire, owner: 'o', id: 'p', processId: 'p', after: 0, signal };
}

describe('a follower', () => {
  it('[CX41] tells every missing number, a portion at a time', async () => {
    const MISSING = 100_000;
    const wire = new Noted();
    const host = reading(async () => {
      const page = pageOf(MISSING + 1, MISSING + 1, MISSING + 1, 0);
      return { ...page, end: true };
    });
    await follow(followed(host, wire));
    expect(wire.sent).toHaveLength(MISSING + 1);
    expect(Math.max(...wire.goes)).toBeLessThan(5000);
    const reported = wire.sent.slice(0, MISSING).map((text) => {
      const { params } = JSON.parse(text) as { params: { seq: number; chunk: string } };
      return params;
    });
    expect(reported.findIndex(({ seq }, index) => seq !== index + 1)).toBe(-1);
    expect(reported.filter(({ chunk }) => chunk !== '').map(({ seq }) => seq)).toEqual([1]);
  });

  it('[CX42] waits out what is in the way for the moment', async () => {
    const clock = new FakeClock();
    const wire = new Noted();
    let asked = 0;
    const host = reading(async () => {
      asked += 1;
      if (asked === 1) {
        setImmediate(() => clock.advance(10_000));
        throw new HoldfastError('limit_reached', 'parkedWaits');
      }
      return { ...pageOf(1, 1, 1), end: true };
    });
    await follow(followed(host, wire, clock));
    expect([asked, wire.sent, wire.dropped]).toEqual([2, ['output'], false]);
  });

  it('[CX42] ends the connection when it can never go on, and says nothing of what is gone', async () => {
    const failing = (code: 'journal_damaged' | 'not_found'): HostApi =>
      reading(() => Promise.reject(new HoldfastError(code, 'no')));
    const [damaged, gone] = [new Noted(), new Noted()];
    await expect(follow(followed(failing('journal_damaged'), damaged))).rejects.toThrow('no');
    await follow(followed(failing('not_found'), gone));
    expect([damaged.dropped, gone.dropped]).toEqual([true, false]);
  });
});

describe('a message', () => {
  it('[CX43] of too many values or levels is refused before it is parsed, whatever follows', () => {
    const long = 300_000;
    expect(() => parseMessage(`{"a":[${'1,'.repeat(long)}`)).toThrow('too many JSON values');
    expect(() => parseMessage('['.repeat(long))).toThrow('recursion limit exceeded');
    expect(() => parseMessage(`"${'[,'.repeat(long)}`)).toThrow(/JSON/);
    const params = { text: '[{,\\"'.repeat(long) };
    const message = JSON.stringify({ id: 1, method: 'x', params });
    expect(parseMessage(message)).toEqual({ kind: 'request', id: '1', method: 'x', params });
  });
});

describe('messages that wait for the handshake', () => {
  it('[CX44] beyond a mebibyte hold the client, until all of them were handled in their order', async () => {
    let refuse: (error: Error) => void = () => undefined;
    const opened = new Promise<never>((_resolve, reject) => (refuse = reject));
    const options = { sessions: { open: () => opened }, serial: false };
    const wire = new Noted();
    const connection = new CodexConnection(
      options as unknown as CodexOptions,
      { owner: 'o', admin: false, tokenId: 'token' },
      () => wire,
    );
    const ask = (id: number, method: string, params: object): void =>
      connection.received(JSON.stringify({ id, method, params }));
    ask(1, 'initialize', { clientName: 'test' });
    ask(2, 'none', { text: 'x'.repeat(600_000) });
    expect([wire.holds, wire.sent]).toEqual([[], []]);
    ask(3, 'none', { text: 'x'.repeat(600_000) });
    expect([wire.holds, wire.sent]).toEqual([[true], []]);
    refuse(new RpcError(rpcCodes.refused, 'not now'));
    while (wire.sent.length < 3) await new Promise(setImmediate);
    expect(wire.holds).toEqual([true, false]);
    expect(wire.sent.map((text) => (JSON.parse(text) as { id: number }).id)).toEqual([1, 2, 3]);
  });
});
