// Which part of what a terminal showed is the output of a run whose end a sentinel tells. The prompt behind it is known
// because the shell draws it once more, behind the sentinel.

/** The end of what was shown: a longer prompt is not looked for. */
const KEPT = 4096;

/* oxlint-disable no-control-regex -- that is what they look for */
/** What moves the cursor or sets something, and shows nothing. */
const CONTROLS =
  /\x1b(?:\[[\x20-\x3f]*[\x40-\x7e]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Z]|[=>78M])|[\s\b]/g;
const LAST_CONTROLS = /(?:\x1b\[[\x20-\x3f]*[\x40-\x7e])+$/;
/* oxlint-enable no-control-regex */

interface Place {
  readonly text: string;
  readonly offset: number;
}

export class ShownOutput {
  private shown = '';
  /** Where the shell waited for a command again, as far as could be seen. */
  private asked: number | undefined;
  private told: Place | undefined;

  /** Bytes that have just been shown. */
  printed(bytes: Buffer): void {
    this.shown = (this.shown + bytes.toString('latin1', Math.max(0, bytes.length - KEPT))).slice(
      -KEPT,
    );
  }

  /** The sentinel is typed now. */
  askedAt(offset: number): void {
    this.asked = offset;
  }

  /** The sentinel was printed. What follows is the prompt. */
  toldAt(offset: number): void {
    this.told = { text: this.shown, offset };
    this.shown = '';
  }

  /** The prompt before the sentinel is the one that was drawn behind it. */
  get promptSeen(): boolean {
    return this.beforeSentinel() !== undefined;
  }

  /** Where the output ends; `mixed` when something else may be in it. */
  end(offset: number): { readonly outputTo: number; readonly mixed: boolean } {
    const { asked, told } = this;
    const found = this.beforeSentinel();
    if (!found) return { outputTo: told?.offset ?? offset, mixed: true };
    const outputTo = found.offset;
    // The line end of the sentinel's own line stands behind the prompt, or somewhere in the output.
    const isOwn = found.text.includes('\n') || (asked !== undefined && outputTo <= asked);
    return { outputTo, mixed: !isOwn };
  }

  /** Where the prompt before the sentinel begins, and what stands behind it: nothing that can be seen. */
  private beforeSentinel(): Place | undefined {
    const { told, shown } = this;
    const prompt = shown.replace(LAST_CONTROLS, '');
    const at = told && prompt !== '' ? told.text.lastIndexOf(prompt) : -1;
    if (!told || at < 0) return undefined;
    const text = told.text.slice(at + prompt.length);
    if (text.replace(CONTROLS, '') !== '') return undefined;
    return { text, offset: told.offset - (told.text.length - at) };
  }
}
