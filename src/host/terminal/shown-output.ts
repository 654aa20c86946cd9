// Which part of the shown text is the output of a run that ends with a sentinel. The prompt after it is recognised
// because the shell draws it again after the sentinel.

/** The end of what was shown: a longer prompt is not searched. */
const KEPT = 4096;

/* oxlint-disable no-control-regex -- that is what they look for */
/** Sequences that move the cursor or set something, and show nothing. */
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
  /** Where the shell waited for a command again, as far as we could see. */
  private typed: number | undefined;
  private atSentinel: Place | undefined;

  /** Bytes that have just been shown. */
  printed(bytes: Buffer): void {
    this.shown = (this.shown + bytes.toString('latin1', Math.max(0, bytes.length - KEPT))).slice(
      -KEPT,
    );
  }

  /** The sentinel is typed now. */
  typedAt(offset: number): void {
    this.typed = offset;
  }

  /** The sentinel was printed. The prompt follows. */
  printedAt(offset: number): void {
    this.atSentinel = { text: this.shown, offset };
    this.shown = '';
  }

  /** The prompt before the sentinel is the one that was drawn after it. */
  get promptSeen(): boolean {
    return this.beforeSentinel() !== undefined;
  }

  /** Where the output ends; `mixed` if something else may be in it. */
  end(offset: number): { readonly outputTo: number; readonly mixed: boolean } {
    const { typed, atSentinel } = this;
    const found = this.beforeSentinel();
    if (!found) return { outputTo: atSentinel?.offset ?? offset, mixed: true };
    const outputTo = found.offset;
    // The line end of the sentinel's line is after the prompt, or somewhere in the output.
    const isOwn = found.text.includes('\n') || (typed !== undefined && outputTo <= typed);
    return { outputTo, mixed: !isOwn };
  }

  /** Where the prompt before the sentinel begins, with nothing visible after it. */
  private beforeSentinel(): Place | undefined {
    const { atSentinel, shown } = this;
    const prompt = shown.replace(LAST_CONTROLS, '');
    const at = atSentinel && prompt !== '' ? atSentinel.text.lastIndexOf(prompt) : -1;
    if (!atSentinel || at < 0) return undefined;
    const text = atSentinel.text.slice(at + prompt.length);
    if (text.replace(CONTROLS, '') !== '') return undefined;
    return { text, offset: atSentinel.offset - (atSentinel.text.length - at) };
  }
}
