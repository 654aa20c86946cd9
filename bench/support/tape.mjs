// A journal in memory for screens, and the bombs that the tests use, cut into events.

import { readFileSync } from 'node:fs';

const EVENT_BYTES = 65_536;

export function tape(printed) {
  const events = [];
  const print = (text) => {
    const seq = events.length + 1;
    const event = {
      seq,
      offset: 0,
      atUs: seq * 10_000,
      wallMs: 0,
      kind: 'output',
      stream: 'pty',
      data: Buffer.from(text),
    };
    events.push(event);
    return event;
  };
  printed.forEach(print);
  return {
    events,
    print,
    async *read(after, upTo = events.length) {
      for (let at = after; at < upTo; at += 64) yield events.slice(at, Math.min(at + 64, upTo));
    },
  };
}

/** Each as the bytes of its events. */
export function builtBombs() {
  const file = new URL('../../test/support/bombs.json', import.meta.url);
  return Object.values(JSON.parse(readFileSync(file, 'utf8'))).map(
    ([first, repeated, times, last]) => {
      const middle = Array.from({ length: times }, (_, n) => repeated.replace('{n}', String(n)));
      const bytes = Buffer.from(first + middle.join('') + last);
      return Array.from({ length: Math.ceil(bytes.length / EVENT_BYTES) }, (_, n) =>
        bytes.subarray(n * EVENT_BYTES, (n + 1) * EVENT_BYTES),
      );
    },
  );
}
