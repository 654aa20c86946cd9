// Parts of a TOML file, by their keys, as TOML again. Only as much of the language is understood as is needed to tell
// where each key and each value begins and ends; values are passed on in the letters in which they were written.

export class TomlProblem extends Error {
  constructor(message: string, line: number, column: number) {
    super(`${line}:${column}: ${message}`);
    this.name = 'TomlProblem';
  }
}

type Keys = readonly string[];

interface Assignment {
  readonly keys: Keys;
  /** `key = value`, as it stands in the file. */
  readonly text: string;
}

interface Section {
  readonly keys: Keys;
  /** "[a.b]" or "[[a.b]]"; empty for what stands before the first header. */
  readonly header: string;
  readonly assignments: Assignment[];
}

/** What a file says below any of the paths; undefined when it says nothing. */
export function selectToml(text: string, paths: readonly Keys[]): string | undefined {
  const parts: string[] = [];
  for (const section of new TomlReader(text).sections()) {
    const kept = section.assignments.filter(({ keys }) =>
      concerns([...section.keys, ...keys], paths),
    );
    const bare = section.assignments.length === 0 && section.header !== '';
    const named = bare && paths.some((path) => startsWith(section.keys, path));
    if (kept.length === 0 && !named) continue;
    const lines = [
      ...(section.header === '' ? [] : [section.header]),
      ...kept.map((each) => each.text),
    ];
    parts.push(`${lines.join('\n')}\n`);
  }
  return parts.length === 0 ? undefined : parts.join('\n');
}

/** Below a path; or above it, because the path may end inside of the value. */
function concerns(keys: Keys, paths: readonly Keys[]): boolean {
  return paths.some((path) => startsWith(keys, path) || startsWith(path, keys));
}

function startsWith(keys: Keys, beginning: Keys): boolean {
  return beginning.every((key, index) => keys[index] === key);
}

class TomlReader {
  private readonly text: string;
  private at = 0;

  constructor(text: string) {
    this.text = text.replace(/^\uFEFF/, '');
  }

  sections(): Section[] {
    const sections: Section[] = [{ keys: [], header: '', assignments: [] }];
    for (;;) {
      this.skip(/(?:[ \t\r\n]|#[^\n]*)*/y);
      if (this.at >= this.text.length) return sections;
      if (this.text[this.at] === '[') sections.push(this.header());
      else sections.at(-1)?.assignments.push(this.assignment());
      this.lineEnd();
    }
  }

  private header(): Section {
    const from = this.at;
    const [open, close] = this.text[this.at + 1] === '[' ? ['[[', ']]'] : ['[', ']'];
    this.at += open.length;
    const keys = this.keys();
    if (!this.text.startsWith(close, this.at)) throw this.problem(`expected \`${close}\``);
    this.at += close.length;
    return { keys, header: this.text.slice(from, this.at), assignments: [] };
  }

  private assignment(): Assignment {
    const from = this.at;
    const keys = this.keys();
    if (this.text[this.at] !== '=') throw this.problem('expected `=`');
    this.at += 1;
    this.skip(/[ \t]*/y);
    this.value(0);
    return { keys, text: this.text.slice(from, this.at) };
  }

  /** a."b.c".'d' */
  private keys(): Keys {
    const keys: string[] = [];
    do {
      if (keys.length > 0) this.at += 1;
      this.skip(/[ \t]*/y);
      keys.push(this.key());
      this.skip(/[ \t]*/y);
    } while (this.text[this.at] === '.');
    return keys;
  }

  private key(): string {
    const bare = this.take(/[A-Za-z0-9_-]+/y);
    if (bare !== undefined) return bare;
    const literal = this.take(/'[^'\n]*'/y);
    if (literal !== undefined) return literal.slice(1, -1);
    const quoted = this.take(BASIC);
    if (quoted === undefined) throw this.problem('expected a key');
    return unescaped(quoted.slice(1, -1));
  }

  private value(depth: number): void {
    if (depth > 64) throw this.problem('values are nested too deeply');
    const first = this.text[this.at];
    if (first === '[') this.several(']', () => this.value(depth + 1));
    else if (first === '{') {
      this.several('}', () => {
        this.keys();
        if (this.text[this.at] !== '=') throw this.problem('expected `=`');
        this.at += 1;
        this.skip(/[ \t]*/y);
        this.value(depth + 1);
      });
    } else if (SCALARS.every((scalar) => this.take(scalar) === undefined))
      throw this.problem('expected a value');
  }

  /** Items between brackets, with commas, line ends and comments between them. */
  private several(close: string, item: () => void): void {
    const between = /(?:[ \t\r\n]|#[^\n]*)*/y;
    this.at += 1;
    this.skip(between);
    while (this.text[this.at] !== close) {
      item();
      this.skip(between);
      if (this.text[this.at] === ',') this.at += 1;
      else if (this.text[this.at] !== close) throw this.problem(`expected \`,\` or \`${close}\``);
      this.skip(between);
    }
    this.at += 1;
  }

  private lineEnd(): void {
    this.skip(/[ \t]*(?:#[^\n]*)?\r?/y);
    if (this.at < this.text.length && this.text[this.at] !== '\n')
      throw this.problem('expected the end of the line');
  }

  private skip(pattern: RegExp): void {
    this.take(pattern);
  }

  private take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0];
    if (found === undefined) return undefined;
    this.at += found.length;
    return found;
  }

  private problem(message: string): TomlProblem {
    const before = this.text.slice(0, this.at).split('\n');
    return new TomlProblem(message, before.length, (before.at(-1)?.length ?? 0) + 1);
  }
}

const BASIC = /"(?:[^"\\\n]|\\[^\n])*"/y;
/** Strings of several lines first: two quotes alone would be an empty string. */
const SCALARS = [
  /"""(?:[^"\\]|\\[^]|"{1,2}(?!"))*"{3,5}/y,
  /'''(?:[^']|'{1,2}(?!'))*'{3,5}/y,
  BASIC,
  /'[^'\n]*'/y,
  // Numbers, dates with one space in them, true, false, inf, nan.
  /\d{4}-\d\d-\d\d [0-9:.Zz+-]+|[A-Za-z0-9+_.:-]+/y,
];

const ESCAPES: Readonly<Record<string, string>> = {
  b: '\b',
  t: '\t',
  n: '\n',
  f: '\f',
  r: '\r',
  e: '\u001B',
};

function unescaped(text: string): string {
  return text.replaceAll(
    /\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))/g,
    (_, short?: string, long?: string, char = '') => {
      const code = short ?? long;
      if (code === undefined) return ESCAPES[char] ?? char;
      const point = Number.parseInt(code, 16);
      return point <= 0x10ffff ? String.fromCodePoint(point) : '\uFFFD';
    },
  );
}
