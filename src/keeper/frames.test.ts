import * as fc from '../../test/support/properties.ts';
import { describe, expect, it } from 'vitest';
import { encodeFrame, FrameReader } from './frames.ts';

const leaf = fc.oneof(
  fc.string(),
  fc.integer(),
  fc.boolean(),
  fc.constant(null),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
);
const message = fc.dictionary(
  fc.string({ maxLength: 5 }).filter((name) => name !== '__proto__'),
  fc.oneof(leaf, fc.array(leaf, { maxLength: 4 }), fc.dictionary(fc.constantFrom('a', 'b'), leaf)),
  { maxKeys: 5 },
);

function readInPieces(bytes: Buffer, size: number): unknown[] {
  const reader = new FrameReader();
  const messages: unknown[] = [];
  for (let at = 0; at < bytes.length; at += size)
    messages.push(...reader.push(bytes.subarray(at, at + size)));
  return messages;
}

describe('frames', () => {
  it('[K15] messages cross however the socket cuts them, bytes as they are', () => {
    const property = fc.property(
      fc.array(message, { maxLength: 4 }),
      fc.integer({ min: 1, max: 300 }),
      (sent, size) => {
        const bytes = Buffer.concat(sent.flatMap((each) => encodeFrame(each)));
        expect(readInPieces(bytes, size)).toEqual(sent.map((each) => ({ ...each })));
        expect(readInPieces(bytes, 1)).toEqual(sent.map((each) => ({ ...each })));
      },
    );
    fc.assert(property, { numRuns: 300 });
  });

  it('[K15] large bytes are neither copied into JSON nor counted twice', () => {
    const records = Buffer.alloc(4_000_000, 7);
    const parts = encodeFrame({ id: 1, result: { records, more: [records.subarray(0, 3)] } });
    expect(parts[0]?.length).toBeLessThan(200);
    const [read] = readInPieces(Buffer.concat(parts), 65_536) as [
      { result: { records: Buffer; more: Buffer[] } },
    ];
    expect(read.result.records.equals(records)).toBe(true);
    expect(read.result.more[0]).toEqual(Buffer.from([7, 7, 7]));
  });

  it('[K11] a reference to bytes that are not there, or a length that cannot be, is refused', () => {
    const text = Buffer.from('{"x":{"$bytes":[0,9]}}');
    const frame = Buffer.concat([Buffer.alloc(8), text]);
    frame.writeUInt32LE(4 + text.length, 0);
    frame.writeUInt32LE(text.length, 4);
    expect(() => readInPieces(frame, 100)).toThrow('refers to bytes');
    expect(() => readInPieces(Buffer.alloc(8, 0xff), 100)).toThrow('does not speak');
  });
});
