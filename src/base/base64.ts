// Base64 written where it is needed. Node makes a string first, which is then copied; where it can be had without, whoever
// has it gives it here.

/** Writes the base64 of `bytes` to the beginning of `into`, which has room for it. */
export type EncodeBase64 = (bytes: Uint8Array, into: Uint8Array) => void;

const byString: EncodeBase64 = (bytes, into) => {
  const { buffer, byteOffset, length } = bytes;
  const text = Buffer.from(buffer, byteOffset, length).toString('base64');
  Buffer.from(into.buffer, into.byteOffset, into.length).write(text, 'latin1');
};
let encode = byString;

export function base64Length(bytes: number): number {
  return Math.ceil(bytes / 3) * 4;
}

/** The answer is how many bytes it takes. */
export function encodeBase64(bytes: Uint8Array, into: Uint8Array): number {
  const length = base64Length(bytes.length);
  if (length > into.length) throw new RangeError(`${length} bytes of base64 into ${into.length}`);
  encode(bytes, into);
  return length;
}

/** From now on it is done so, in this thread. Refused when it does not give the same. */
export function encodeBy(quick: EncodeBase64): boolean {
  const sample = Uint8Array.from({ length: 1000 }, (_, at) => at * 31 + (at >> 3));
  for (const size of [0, 1, 2, 3, 47, 48, 49, 191, 192, 193, 998, 999, 1000]) {
    const [expected, given] = [byString, quick].map((way) => {
      const into = new Uint8Array(2000).fill(0x21);
      way(sample.subarray(sample.length - size), into);
      return into;
    });
    if (expected?.some((byte, at) => byte !== given?.[at])) return false;
  }
  encode = quick;
  return true;
}
