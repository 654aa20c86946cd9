// Base64 written where it is needed. Node makes a string first, which is then copied; where it can be had without, whoever
// has it gives it here.

/** Writes the base64 of `bytes` to the beginning of `into`, which has room for it. */
export type EncodeBase64 = (bytes: Buffer, into: Buffer) => void;

const byString: EncodeBase64 = (bytes, into) => void into.write(bytes.toString('base64'), 'latin1');
let encode = byString;

export function base64Length(bytes: number): number {
  return Math.ceil(bytes / 3) * 4;
}

export function encodeBase64(bytes: Buffer, into: Buffer): void {
  const length = base64Length(bytes.length);
  if (length > into.length) throw new RangeError(`${length} bytes of base64 into ${into.length}`);
  encode(bytes, into);
}

/** From now on it is done so, in this thread. Refused when it does not give the same. */
export function encodeBy(quick: EncodeBase64): boolean {
  const sample = Buffer.from(Array.from({ length: 1000 }, (_, at) => at * 31 + (at >> 3)));
  for (const size of [0, 1, 2, 3, 47, 48, 49, 191, 192, 193, 998, 999, 1000]) {
    const [expected, given] = [byString, quick].map((way) => {
      const into = Buffer.alloc(2000, '!');
      way(sample.subarray(sample.length - size), into);
      return into;
    });
    if (!expected || !given?.equals(expected)) return false;
  }
  encode = quick;
  return true;
}
