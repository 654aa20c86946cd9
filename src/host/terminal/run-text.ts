// What is typed for a command, so that a shell takes it as one, however many lines it has.

const PASTE_START = '\x1b[200~';
const PASTE_END = '\x1b[201~';

/** A command as one input: the shell runs it whole and tells one end. */
export function runText(command: string, bracketedPaste: boolean): string {
  const text = command.replace(/\r\n?/g, '\n').replace(/\n+$/, '');
  if (!/[\n\t]/.test(text)) return `${text}\r`;
  if (bracketedPaste) return `${PASTE_START}${text.replaceAll(PASTE_END, '')}${PASTE_END}\r`;
  // Read as one compound command before any of it runs, so that no line of it is taken for another one's input.
  return text.includes('\n') ? `{\r${text.replaceAll('\n', '\r')}\r}\r` : `${text}\r`;
}

/** As it is typed where nobody tells ends. */
export function plainText(command: string): string {
  return `${command.replace(/\r\n?/g, '\n').replace(/\n+$/, '').replaceAll('\n', '\r')}\r`;
}

/** Where marks are a part of the prompt itself they go with it. */
const CHANGES_PROMPT = /\bPS1\b/;
/** Where the prompt is only the second place of marks they go with both. */
const CHANGES_HOOKS = /\bunset\b[^;\n]*\bPROMPT_COMMAND\b[^]*\bPS1=/;

/** Whether the shell may make no marks any more behind this. `begins`: it marks the beginning of commands, too. */
export function endsMarks(command: string, begins: boolean): boolean {
  return (begins ? CHANGES_HOOKS : CHANGES_PROMPT).test(command);
}
