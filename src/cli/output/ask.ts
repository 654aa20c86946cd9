// Asks the person at the terminal before something is deleted.

import { createInterface } from 'node:readline';
import type { Output } from './output.ts';

/** True for "y", and for a script, which is not asked. */
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
