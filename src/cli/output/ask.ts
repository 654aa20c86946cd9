// A question to the person at the terminal, before something is done that cannot be taken back.

import { createInterface } from 'node:readline';
import type { Output } from './output.ts';

/** Whether it may be done. A script is not asked: it has said what it wants. */
export async function agrees(out: Output, question: string): Promise<boolean> {
  const { stdin, stderr } = process;
  if (out.json || out.columns === undefined || !stdin.isTTY || !stderr.isTTY) return true;
  const reader = createInterface({ input: stdin, output: stderr });
  try {
    return await new Promise((resolve) => {
      // Ctrl-C and Ctrl-D.
      reader.once('close', () => resolve(false));
      reader.question(`${question} [y/N] `, (answer) => resolve(/^y(?:es)?$/i.test(answer.trim())));
    });
  } finally {
    reader.close();
  }
}
