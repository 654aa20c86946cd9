// Whether a command ends with "&", which means that nobody should wait for it.

import { shellTokens, type ShellToken } from './tokens.ts';

export interface ShellReading {
  /** The command without its trailing "&"; absent if it has none. */
  readonly promoted?: string;
  /** Its last command is a pipeline, whose exit code is that of its last part. */
  readonly pipeline: boolean;
}

const LIST_ENDS = new Set(['&&', '||', ';', '&', '\n']);

export function readShell(command: string): ShellReading {
  const { tokens, complete } = shellTokens(command);
  const pipeline = endsInPipeline(tokens);
  const promoted = complete ? withoutAmpersand(command, tokens) : undefined;
  return { pipeline, ...(promoted !== undefined && { promoted }) };
}

function withoutAmpersand(command: string, tokens: readonly ShellToken[]): string | undefined {
  const last = tokens.findLastIndex(({ kind }) => kind !== 'newline');
  const [before, ampersand] = [tokens[last - 1], tokens[last]];
  if (ampersand?.kind !== 'operator' || ampersand.text !== '&') return undefined;
  // After another operator, or alone on a line, it is an error that the shell should report.
  if (before === undefined || (before.kind !== 'word' && before.text !== ')')) return undefined;
  const head = command.slice(0, before.end);
  // A line continuation means nothing here.
  const rest = command.slice(ampersand.end).replace(/^(?:[ \t]*\\\n)+/, '');
  if (onlyComments(rest)) return head;
  // The ampersand may have been the only separator between two words.
  return head + (/^\s/.test(rest) ? '' : ' ') + rest;
}

/** Otherwise the body of a here-document follows, which belongs to the command. */
function onlyComments(text: string): boolean {
  return text.split('\n').every((line) => /^\s*(#|$)/.test(line));
}

function endsInPipeline(tokens: readonly ShellToken[]): boolean {
  const operators = tokens.filter(({ kind }) => kind !== 'word').map(({ text }) => text);
  const lastPipe = operators.findLastIndex((text) => text === '|' || text === '|&');
  if (lastPipe < 0) return false;
  const behind = tokens.filter(({ kind }) => kind !== 'word').slice(lastPipe + 1);
  const wordsFollow = (token: ShellToken): boolean =>
    tokens.some(({ kind, start }) => kind === 'word' && start > token.start);
  return !behind.some((token) => LIST_ENDS.has(token.text) && wordsFollow(token));
}
