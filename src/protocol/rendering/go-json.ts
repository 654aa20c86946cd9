// JSON as Go's standard library reads and writes it, for clients that expect that.

/** Escapes HTML characters and the two line separators, and ends with a newline. */
export function encodeGoJson(value: unknown): string {
  const text = JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, (letter) => {
    return `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
  return `${text}\n`;
}

/** Go's escapes with a letter. */
const LETTERS: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\u0007': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
};

/** Quotes a string as Go does in messages: unprintable characters are escaped. */
export function quoteGo(text: string): string {
  const quoted = text.replace(/["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, (letter) => {
    const point = letter.codePointAt(0) ?? 0;
    if (LETTERS[letter] !== undefined) return LETTERS[letter];
    if (point < 0x80) return `\\x${hex(point, 2)}`;
    return point < 0x10000 ? `\\u${hex(point, 4)}` : `\\U${hex(point, 8)}`;
  });
  return `"${quoted}"`;
}

function hex(point: number, digits: number): string {
  return point.toString(16).padStart(digits, '0');
}

/** Parses the first JSON value of a body and ignores the rest. Throws with a reason. */
export function decodeFirstValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (text.trim() === '') throw new SyntaxError('EOF', { cause: error });
    if (/^\s*null/.test(text)) return null;
    const end = endOfFirstValue(text);
    if (end === undefined || end >= text.length) throw error;
    return JSON.parse(text.slice(0, end));
  }
}

/** Index after the first object or array; undefined if it does not end. */
function endOfFirstValue(text: string): number | undefined {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at];
    if (inString) {
      if (letter === '\\') at += 1;
      else if (letter === '"') inString = false;
    } else if (letter === '"') inString = true;
    else if (letter === '{' || letter === '[') depth += 1;
    else if (letter === '}' || letter === ']') {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return undefined;
}

/** A field by its case-insensitive name; the last one wins, null counts as absent. */
export function field(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  let found: unknown;
  for (const [key, item] of Object.entries(value)) {
    if (key.toLowerCase() === name && item !== null) found = item;
  }
  return found;
}
