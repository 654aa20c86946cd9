import { expect, test } from 'vitest';
import { encodeMessage, isTooLong } from './messages.ts';

test('[FL59] an answer of any length is a frame, and what JetStream answers is none', () => {
  for (let length = 0; length < 1000; length += 1) {
    const answer = Buffer.concat(encodeMessage({ result: 'x'.repeat(length) }));
    expect([length, isTooLong(answer)]).toEqual([length, false]);
  }
  for (const text of ['{"type":"io.nats.jetstream"}', '{}\n\n', '+ACK', '-ERR'])
    expect([text, isTooLong(Buffer.from(text))]).toEqual([text, true]);
});
