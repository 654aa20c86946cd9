// What a shell still sends to the terminal between its begin mark and the command: fish leaves its paste mode, sets the
// title and resets colours there, and has no later hook.

/** A title contains the command. A longer sequence counts as output. */
const MAX_BYTES = 8192;
/* oxlint-disable no-control-regex */
const SEQUENCES =
  /^(?:(?:\x1b\[[?<>=][\d;]*[lmu]|\x1b\](?:[0127]|133);[^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[30m(?=\x1b\(|\x1b\[0?m)|\x1b\[0?m|\x1b\(B|\x1b[=>]|\x0f)\r?)*/;
const UNFINISHED = /^\x1b(?:\[[?<>=\d;]*|\][^\x07\x1b]*\x1b?|\[30m(?:\x1b[([]?)?|\()?$/;
/* oxlint-enable no-control-regex */

export class Preamble {
  private seen = '';
  /** Its bytes so far. */
  length = 0;

  /** Adds bytes that follow the mark; returns whether it may continue. */
  goesOn(bytes: Buffer): boolean {
    this.seen += bytes.toString('latin1');
    this.length = SEQUENCES.exec(this.seen)?.[0].length ?? 0;
    return (
      this.seen.length < MAX_BYTES &&
      (this.length === this.seen.length || UNFINISHED.test(this.seen.slice(this.length)))
    );
  }
}
