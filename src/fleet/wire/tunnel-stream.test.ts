import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { encodeFrame } from '../../keeper/frames.ts';
import { readTunnelMessage, TunnelStream, type TunnelMessage } from './tunnel-stream.ts';

const WINDOW = 64 * 1024;
const FIRST = 32 * 1024;

/** Two ends. What one sends goes through `pass` to the other; nothing is sent while it returns undefined. */
function ends(pass: (message: TunnelMessage) => TunnelMessage | undefined = (message) => message) {
  const clock = new FakeClock();
  const sent: TunnelMessage[] = [];
  const make = (to: () => TunnelStream, through: typeof pass): TunnelStream =>
    new TunnelStream({
      clock,
      windowBytes: () => WINDOW,
      send: (message) => {
        sent.push(message);
        const passed = through(message);
        // As over a network: never in the turn of the sender.
        if (passed) setImmediate(() => to().receive(passed));
        return true;
      },
    });
  const near: TunnelStream = make(() => far, pass);
  const far: TunnelStream = make(
    () => near,
    (message) => message,
  );
  // 'close' follows.
  for (const end of [near, far]) end.on('error', () => undefined);
  return { clock, near, far, sent };
}

function wholeOf(stream: TunnelStream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  return new Promise((resolve) => {
    stream.once('end', () => resolve(Buffer.concat(chunks)));
  });
}

function failed(stream: TunnelStream): Promise<string> {
  return new Promise((resolve) => {
    stream.once('error', (error) => resolve(error.message));
  });
}

describe('a tunnel', () => {
  it('[FL70] carries every byte in order, both ways, and ends each way by itself', async () => {
    const { near, far } = ends();
    const bytes = Buffer.from(Array.from({ length: 1_000_003 }, (_, at) => at % 251));
    const there = wholeOf(far);
    near.end(bytes);
    expect((await there).equals(bytes)).toBe(true);
    const back = wholeOf(near);
    far.end('answer');
    expect((await back).toString()).toBe('answer');
  });

  it('[FL70] a sender stops where the reader does, and goes on with it', async () => {
    const { near, far, sent } = ends();
    let written = false;
    near.write(Buffer.alloc(1024 * 1024), () => (written = true));
    await new Promise((resolve) => setImmediate(resolve));
    const under = (): number =>
      sent.reduce((total, each) => total + ('bytes' in each ? each.bytes.length : 0), 0);
    expect([under(), written]).toEqual([FIRST, false]);
    const ahead: number[] = [];
    let read = 0;
    await new Promise<void>((resolve) => {
      far.on('data', (chunk: Buffer) => {
        read += chunk.length;
        ahead.push(under() - read);
        if (read === 1024 * 1024) resolve();
      });
    });
    expect(Math.max(...ahead)).toBeLessThanOrEqual(2 * WINDOW);
    expect(written).toBe(true);
  });

  it('[FL71] a lost message ends it at both ends, also if it was the last one', async () => {
    for (const last of [false, true]) {
      let count = 0;
      const { near, far, clock } = ends((message) => {
        if (!('bytes' in message)) return message;
        count += 1;
        return count === 2 ? undefined : message;
      });
      far.resume();
      const [one, other] = [failed(near), failed(far)];
      near.write('a');
      near.write('b');
      if (!last) near.write('c');
      else clock.advance(5000);
      expect(await Promise.all([one, other])).toEqual(
        Array(2).fill('Bytes of the tunnel were lost.'),
      );
    }
  });

  it('[FL71] an end that sends more than it may, or nothing for 15 s, is given up', async () => {
    const { far } = ends();
    const over = failed(far);
    far.receive({ at: 0, bytes: Buffer.alloc(FIRST + 1) });
    expect(await over).toBe('The other end of the tunnel sent more than it may.');
    const silent = ends(() => undefined);
    const noticed = failed(silent.far);
    silent.clock.advance(20_001);
    expect(await noticed).toBe('The other end of the tunnel is silent.');
  });

  it('[FL71] bytes that are no message of a tunnel are none', () => {
    const read = (message: unknown): unknown =>
      readTunnelMessage(Buffer.concat(encodeFrame(message)));
    expect(read({ at: 3, bytes: Buffer.from('x') })).toEqual({ at: 3, bytes: Buffer.from('x') });
    for (const odd of [
      { at: -1, bytes: Buffer.from('x') },
      { at: 1 },
      { grant: 1.5 },
      { grant: '1' },
      {},
      7,
      null,
    ])
      expect(read(odd)).toBeUndefined();
    expect(readTunnelMessage(Buffer.from('nothing'))).toBeUndefined();
  });
});
