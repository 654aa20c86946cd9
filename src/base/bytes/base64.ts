// Encodes base64 straight into a buffer. The default goes through a string; `useFastBase64` installs a native encoder.

/** Writes the base64 of `bytes` at the start of `into`, which is large enough. */
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

/** Installs a faster encoder in this thread. Returns false if its results differ. */
export function useFastBase64(fast: EncodeBase64): boolean {
  const sample = Buffer.from(Array.from({ length: 1000 }, (_, at) => at * 31 + (at >> 3)));
  for (const size of [0, 1, 2, 3, 47, 48, 49, 191, 192, 193, 998, 999, 1000]) {
    const [expected, given] = [byString, fast].map((way) => {
      const into = Buffer.alloc(2000, '!');
      way(sample.subarray(sample.length - size), into);
      return into;
    });
    if (!expected || !given?.equals(expected)) return false;
  }
  encode = fast;
  return true;
}
