// Parses and formats messages of codex's JSON-RPC. Stricter than JSON.parse: a duplicate key, too many values or too
// deep nesting make a message malformed. An id is echoed in its original digits, because a 64-bit number does not fit a
// JavaScript number.

export type Message =
  | {
      readonly kind: 'request';
      readonly id: string;
      readonly method: string;
      readonly params: unknown;
    }
  | { readonly kind: 'notification'; readonly method: string }
  | { readonly kind: 'answer' };

/** The text says why the message is malformed. */
export class MalformedMessage extends Error {}

/** The limits of codex's server. */
const MAX_VALUES = 262_144;
const MAX_DEPTH = 128;
/** Text of this length parses in about a millisecond, whatever it contains. */
const UNCOUNTED_LENGTH = 128 * 1024;
const MAX_INT64 = 2n ** 63n;

export function parseMessage(text: string): Message {
  // A large message of brackets or small values would take long to parse, so its values are counted first.
  if (text.length > UNCOUNTED_LENGTH) refuseOversized(text);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new MalformedMessage(error instanceof Error ? error.message : 'not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new MalformedMessage('expected a JSON-RPC object');
  const idText = new Scan(text).run();
  return classify(value as Record<string, unknown>, idText);
}

/** Counts values and nesting in text that may not be JSON. */
function refuseOversized(text: string): void {
  let values = 0;
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const letter = text.charCodeAt(at);
    if (letter === 0x22) at = stringEnd(text, at) - 1;
    else if (letter === 0x7d || letter === 0x5d) depth -= 1;
    else if (letter === 0x7b || letter === 0x5b || letter === 0x2c) {
      values += 1;
      if (letter !== 0x2c) depth += 1;
      if (depth > MAX_DEPTH) throw new MalformedMessage('recursion limit exceeded');
      if (values > MAX_VALUES) throw new MalformedMessage('too many JSON values');
    }
  }
}

/** The index after the closing quote of the string that begins here, or the end of the text. */
function stringEnd(text: string, at: number): number {
  for (let from = at + 1; ;) {
    const quote = text.indexOf('"', from);
    if (quote < 0) return text.length;
    let slashes = 0;
    while (text.charCodeAt(quote - 1 - slashes) === 0x5c) slashes += 1;
    if (slashes % 2 === 0) return quote + 1;
    from = quote + 1;
  }
}

function classify(value: Record<string, unknown>, idText: string | undefined): Message {
  const { method } = value;
  const hasId = Object.hasOwn(value, 'id');
  if (Object.hasOwn(value, 'method')) {
    if (typeof method !== 'string') throw new MalformedMessage('the method is not a string');
    if (!hasId) return { kind: 'notification', method };
    return { kind: 'request', id: checkedId(value['id'], idText), method, params: value['params'] };
  }
  if (Object.hasOwn(value, 'result')) return { kind: 'answer' };
  if (Object.hasOwn(value, 'error')) return { kind: 'answer' };
  throw new MalformedMessage('neither a request nor a notification nor an answer');
}

function checkedId(id: unknown, text: string | undefined): string {
  if (typeof id === 'string') return JSON.stringify(id);
  if (typeof id === 'number' && text !== undefined && /^-?\d{1,19}$/.test(text)) {
    const number = BigInt(text);
    if (number >= -MAX_INT64 && number < MAX_INT64) return text;
  }
  throw new MalformedMessage('the id is neither a string nor a 64-bit integer');
}

/** One pass over text that is known to be JSON. */
class Scan {
  private readonly text: string;
  private at = 0;
  private values = 0;
  private idText: string | undefined;

  constructor(text: string) {
    this.text = text;
  }

  /** The digits of the outermost "id", if it is a number. */
  run(): string | undefined {
    /** For each open bracket: the keys so far, or undefined in an array. */
    const open: (Set<string> | undefined)[] = [];
    for (; this.at < this.text.length;) {
      const letter = this.text.charCodeAt(this.at);
      if (letter === 0x7b || letter === 0x5b) {
        this.count();
        open.push(letter === 0x7b ? new Set() : undefined);
        if (open.length > MAX_DEPTH) throw new MalformedMessage('recursion limit exceeded');
        this.at += 1;
      } else if (letter === 0x7d || letter === 0x5d) {
        open.pop();
        this.at += 1;
      } else if (letter === 0x22) this.string(open);
      else if (isScalar(letter)) this.scalar();
      else this.at += 1;
    }
    return this.idText;
  }

  private string(open: readonly (Set<string> | undefined)[]): void {
    const end = stringEnd(this.text, this.at);
    const raw = this.text.slice(this.at, end);
    this.at = end;
    if (!this.isKey()) {
      this.count();
      return;
    }
    const keys = open.at(-1);
    const key = raw.includes('\\') ? (JSON.parse(raw) as string) : raw.slice(1, -1);
    if (keys?.has(key)) throw new MalformedMessage(`duplicate JSON object key \`${key}\``);
    keys?.add(key);
    if (key === 'id' && open.length === 1) this.idText = this.following();
  }

  /** A string before a colon is a key. */
  private isKey(): boolean {
    while (isSpace(this.text.charCodeAt(this.at))) this.at += 1;
    return this.text.charCodeAt(this.at) === 0x3a;
  }

  private following(): string {
    return /^[\s:]*([-\d.eE+]*)/.exec(this.text.slice(this.at, this.at + 80))?.[1] ?? '';
  }

  private scalar(): void {
    this.count();
    while (isScalar(this.text.charCodeAt(this.at))) this.at += 1;
  }

  private count(): void {
    this.values += 1;
    if (this.values > MAX_VALUES) throw new MalformedMessage('too many JSON values');
  }
}

function isSpace(letter: number): boolean {
  return letter === 0x20 || letter === 0x0a || letter === 0x0d || letter === 0x09;
}

/** The characters of numbers, true, false and null. */
function isScalar(letter: number): boolean {
  return (
    (letter >= 0x30 && letter <= 0x39) ||
    (letter >= 0x61 && letter <= 0x7a) ||
    letter === 0x2d ||
    letter === 0x2b ||
    letter === 0x2e ||
    letter === 0x45
  );
}

export function resultText(id: string, result: unknown): string {
  return `{"id":${id},"result":${JSON.stringify(result)}}`;
}

export function errorText(
  id: string,
  {
    code,
    message,
    data,
  }: { readonly code: number; readonly message: string; readonly data?: unknown },
): string {
  const error = { code, message, ...(data !== undefined && { data }) };
  return `{"error":${JSON.stringify(error)},"id":${id}}`;
}

export function notificationText(method: string, params: unknown): string {
  return JSON.stringify({ method, params });
}
