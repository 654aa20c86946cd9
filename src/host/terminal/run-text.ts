// The text to type for a command, so that a shell takes it as one, however many lines it has.

const PASTE_START = '\x1b[200~';
const PASTE_END = '\x1b[201~';

/** A command as one input: the shell runs it as a whole and reports one end. */
export function runText(command: string, bracketedPaste: boolean): string {
  const text = command.replace(/\r\n?/g, '\n').replace(/\n+$/, '');
  if (!/[\n\t]/.test(text)) return `${text}\r`;
  if (bracketedPaste) return `${PASTE_START}${text.replaceAll(PASTE_END, '')}${PASTE_END}\r`;
  // The shell reads it as one compound command before it runs any of it, so that no line becomes the input of another.
  return text.includes('\n') ? `{\r${text.replaceAll('\n', '\r')}\r}\r` : `${text}\r`;
}

/** The text for a terminal without reported ends. */
export function plainText(command: string): string {
  return `${command.replace(/\r\n?/g, '\n').replace(/\n+$/, '').replaceAll('\n', '\r')}\r`;
}

/** Marks that are part of the prompt disappear with it. */
const CHANGES_PROMPT = /\bPS1\b/;
/** Marks that are in the prompt and elsewhere disappear with both. */
const CHANGES_HOOKS = /\bunset\b[^;\n]*\bPROMPT_COMMAND\b[^]*\bPS1=/;

/** Whether the shell may make no more marks after this command. `begins`: it also marks the beginning of commands. */
export function endsMarks(command: string, begins: boolean): boolean {
  return (begins ? CHANGES_HOOKS : CHANGES_PROMPT).test(command);
}
