// The text in which models of OpenAI's Agents SDK read a command of a sandbox, and its cut to a number of tokens.

import { randomBytes } from 'node:crypto';
import { cutEnd, cutStart, decodeUtf8 } from '../base/bytes/utf8.ts';

export interface ExecAnswer {
  readonly output: string;
  readonly stdout: string;
  readonly stderr: string;
  readonly wallTimeSeconds: number;
  /** Absent while the command runs. */
  readonly exitCode?: number;
  /** Only while the command runs: the number for `write_stdin`. */
  readonly sessionId?: number;
  /** Only if the output was cut. */
  readonly originalTokenCount?: number;
}

/** As the framework counts tokens. */
const BYTES_PER_TOKEN = 4;

export function execText(answer: ExecAnswer): string {
  const { output, wallTimeSeconds, exitCode, sessionId, originalTokenCount } = answer;
  return [
    `Chunk ID: ${randomBytes(3).toString('hex')}`,
    `Wall time: ${wallTimeSeconds.toFixed(4)} seconds`,
    ...(sessionId === undefined ? [] : [`Process running with session ID ${sessionId}`]),
    ...(exitCode === undefined ? [] : [`Process exited with code ${exitCode}`]),
    ...(originalTokenCount === undefined ? [] : [`Original token count: ${originalTokenCount}`]),
    'Output:',
    output,
  ].join('\n');
}

/** Keeps both ends. */
export function cutToTokens(
  text: string,
  maxTokens: number | undefined,
): Pick<ExecAnswer, 'output' | 'originalTokenCount'> {
  const bytes = Buffer.from(text);
  const maxBytes = (maxTokens ?? Infinity) * BYTES_PER_TOKEN;
  if (bytes.length <= maxBytes) return { output: text };
  const originalTokenCount = tokensOf(bytes.length);
  const lines = text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
  const prefix = `Total output lines: ${lines}\n\n`;
  // The widest mark there can be.
  const kept = Math.max(0, maxBytes - prefix.length - markOf(originalTokenCount).length);
  const headEnd = cutEnd(bytes, Math.floor(kept / 2));
  const tailStart = cutStart(bytes, bytes.length - Math.ceil(kept / 2));
  const [head, tail] = [bytes.subarray(0, headEnd), bytes.subarray(tailStart)];
  const mark = markOf(tokensOf(tailStart - headEnd));
  return { output: prefix + decodeUtf8(head) + mark + decodeUtf8(tail), originalTokenCount };
}

function markOf(tokens: number): string {
  return `...${tokens} tokens truncated...`;
}

function tokensOf(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}
