// JSON as Go's standard library reads and writes it, for clients that were made against it.

/** HTML characters and the two line separators escaped, one newline at the end. */
export function encodeGoJson(value: unknown): string {
  const text = JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, (letter) => {
    return `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
  return `${text}\n`;
}

/** A string as Go quotes it in messages. */
export function quoteGo(text: string): string {
  return JSON.stringify(text)
    .replace(/\u007f/g, '\\x7f')
    .replace(/\\u00([0-9a-f]{2})/g, '\\x$1');
}

/** The first JSON value of a body; whatever follows it is ignored. Throws with a reason. */
export function decodeFirstValue(text: string): unknown {
  if (text.trim() === '') throw new SyntaxError('EOF');
  try {
    return JSON.parse(text);
  } catch (error) {
    const end = endOfFirstValue(text);
    if (end === undefined || end >= text.length) throw error;
    return JSON.parse(text.slice(0, end));
  }
}

/** Where the first object or array ends, or undefined when it does not. */
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

/** A field whatever the case of its name; the last one wins, null counts as absent. */
export function field(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  let found: unknown;
  for (const [key, item] of Object.entries(value)) {
    if (key.toLowerCase() === name && item !== null) found = item;
  }
  return found;
}
