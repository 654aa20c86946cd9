// Splits a shell command into words and operators, with quotes, substitutions, comments and here-documents, as far as
// they decide what an "&" means. Follows sh, and bash where only bash has a meaning.

export interface ShellToken {
  /** The operator of a here-document and its delimiter are one word. */
  readonly kind: 'word' | 'operator' | 'newline';
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

export interface ShellTokens {
  /** Only the outermost list: quotes and substitutions are parts of words. */
  readonly tokens: readonly ShellToken[];
  /** False if a quote, substitution, parenthesis or here-document is not closed. */
  readonly complete: boolean;
}

/** Longest first, so that "&&" is not two "&". */
const OPERATORS = '&>> <<< <<- ;;& && &> || |& ;; ;& << <& <> >> >& >| & | ; < > ( )'.split(' ');
const WORD_END = new Set([' ', '\t', '\n', '&', '|', ';', '<', '>', '(', ')']);

export function shellTokens(command: string): ShellTokens {
  const scanner = new Scanner(command);
  const tokens = scanner.list(false);
  return { tokens, complete: scanner.complete };
}

class Scanner {
  complete = true;
  private at = 0;
  private readonly text: string;
  /** Here-documents whose bodies begin after the next line break. */
  private hereDocuments: { delimiter: string; stripTabs: boolean }[] = [];

  constructor(text: string) {
    this.text = text;
  }

  /** Everything to the end or, inside a substitution, to its closing parenthesis. */
  list(nested: boolean): ShellToken[] {
    const tokens: ShellToken[] = [];
    let parentheses = 0;
    let cases = 0;
    for (;;) {
      this.skipBlanks();
      if (this.at >= this.text.length) {
        if (nested || parentheses > 0 || this.hereDocuments.length > 0) this.complete = false;
        return tokens;
      }
      const token = this.next();
      tokens.push(token);
      if (token.text === 'case') cases += 1;
      if (token.text === 'esac') cases = Math.max(0, cases - 1);
      if (token.text === '(') parentheses += 1;
      // In "case", a pattern ends with a parenthesis that was never opened.
      if (token.text !== ')' || (parentheses === 0 && cases > 0)) continue;
      if (parentheses === 0 && nested) return tokens;
      parentheses = Math.max(0, parentheses - 1);
    }
  }

  private next(): ShellToken {
    const start = this.at;
    const made = (kind: ShellToken['kind']): ShellToken => {
      return { kind, text: this.text.slice(start, this.at), start, end: this.at };
    };
    if (this.text[start] === '\n') {
      this.at += 1;
      const token = made('newline');
      this.skipHereDocuments();
      return token;
    }
    const operator = this.operator();
    if (operator === undefined) {
      this.word();
      return made('word');
    }
    this.at += operator.length;
    if (operator !== '<<' && operator !== '<<-') return made('operator');
    this.hereDocument(operator === '<<-');
    return made('word');
  }

  /** Process substitutions look like an operator but are words. */
  private operator(): string | undefined {
    const rest = this.text.slice(this.at, this.at + 3);
    if (/^[<>]\(/.test(rest)) return undefined;
    return OPERATORS.find((operator) => rest.startsWith(operator));
  }

  private skipBlanks(): void {
    for (;;) {
      const char = this.text[this.at];
      if (char === ' ' || char === '\t' || char === '\r') this.at += 1;
      else if (char === '\\' && this.text[this.at + 1] === '\n') this.at += 2;
      else if (char === '#') this.skipTo('\n');
      else return;
    }
  }

  private word(): void {
    const { text } = this;
    while (this.at < text.length) {
      const char = text[this.at] ?? '';
      if (/^[<>]\(/.test(text.slice(this.at, this.at + 2))) this.substitution(2);
      else if (WORD_END.has(char)) return;
      else this.piece(char, false);
    }
  }

  /** One character, quotation or substitution. */
  private piece(char: string, quoted: boolean): void {
    const after = this.text[this.at + 1];
    if (char === '\\') this.at = Math.min(this.text.length, this.at + 2);
    else if (char === "'" && !quoted) this.singleQuoted();
    else if (char === '"' && !quoted) this.doubleQuoted();
    else if (char === '`') this.backquoted();
    else if (char === '$' && after === '(') this.dollarParenthesis();
    else if (char === '$' && after === '{') this.braces();
    else if (char === '$' && after === "'" && !quoted) this.dollarQuoted();
    else this.at += 1;
  }

  private singleQuoted(): void {
    this.at += 1;
    this.skipTo("'");
    this.close();
  }

  private doubleQuoted(): void {
    this.at += 1;
    this.pieces('"', true);
  }

  /** $'…' of bash: a backslash escapes a quote. */
  private dollarQuoted(): void {
    this.at += 2;
    while (this.at < this.text.length && this.text[this.at] !== "'")
      this.at += this.text[this.at] === '\\' ? 2 : 1;
    this.close();
  }

  private backquoted(): void {
    this.at += 1;
    while (this.at < this.text.length && this.text[this.at] !== '`')
      this.at += this.text[this.at] === '\\' ? 2 : 1;
    this.close();
  }

  private braces(): void {
    this.at += 2;
    this.pieces('}', false);
  }

  private dollarParenthesis(): void {
    if (this.text[this.at + 2] === '(') this.arithmetic();
    else this.substitution(2);
  }

  private substitution(opening: number): void {
    this.at += opening;
    const outer = this.hereDocuments;
    this.hereDocuments = [];
    this.list(true);
    this.hereDocuments = outer;
  }

  /** $(( … )): contains no commands. */
  private arithmetic(): void {
    this.at += 3;
    for (let depth = 2; depth > 0;) {
      const char = this.text[this.at];
      if (char === undefined) {
        this.complete = false;
        return;
      }
      if (char === '(') depth += 1;
      if (char === ')') depth -= 1;
      this.at += 1;
    }
  }

  private pieces(closing: string, quoted: boolean): void {
    while (this.at < this.text.length) {
      const char = this.text[this.at] ?? '';
      if (char === closing) break;
      this.piece(char, quoted);
    }
    this.close();
  }

  /** Steps over the closing character, if it is there. */
  private close(): void {
    if (this.at >= this.text.length) this.complete = false;
    this.at = Math.min(this.text.length, this.at + 1);
  }

  private skipTo(char: string): void {
    const found = this.text.indexOf(char, this.at);
    this.at = found < 0 ? this.text.length : found;
  }

  private hereDocument(stripTabs: boolean): void {
    this.skipBlanks();
    const start = this.at;
    this.word();
    const delimiter = this.text.slice(start, this.at).replace(/\\(.)|['"]/gs, '$1');
    if (delimiter === '') this.complete = false;
    else this.hereDocuments.push({ delimiter, stripTabs });
  }

  private skipHereDocuments(): void {
    for (const { delimiter, stripTabs } of this.hereDocuments.splice(0)) {
      for (let over = false; !over;) {
        if (this.at >= this.text.length) {
          this.complete = false;
          return;
        }
        const start = this.at;
        this.skipTo('\n');
        const line = this.text.slice(start, this.at);
        this.at = Math.min(this.text.length, this.at + 1);
        over = (stripTabs ? line.replace(/^\t+/, '') : line) === delimiter;
      }
    }
  }
}
