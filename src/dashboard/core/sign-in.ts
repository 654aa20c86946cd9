// Sign-in: the one-time code of the link becomes the page's token.

import { signal } from '@preact/signals';
import { ask, Problem } from './http.ts';
import { refreshPlace } from './route.ts';
import { keepToken, signIn, token, type SignIn } from './token.ts';

/** Why the last attempt failed. */
export const signInProblem = signal<Problem | undefined>(undefined);

/** Called before anything else, and for a link that is opened in a tab that shows this page already. */
export function beginSession(): Promise<void> {
  const code = takeCode();
  turn = turn.then(() => begin(code));
  return turn;
}

/** One after the other: the code of a link may still be on its way when the address changes again. */
let turn: Promise<void> = Promise.resolve();

async function begin(code: string | undefined): Promise<void> {
  if (code === undefined) {
    if (signIn.value === 'unknown') signIn.value = token() === undefined ? await openToAll() : 'in';
    return;
  }
  try {
    const opened = await ask<{ readonly token: string }>('POST', '/v1/sessions', {
      body: { code },
    });
    signInProblem.value = undefined;
    keepToken(opened.token);
  } catch (error) {
    signInProblem.value = error as Problem;
    signIn.value = token() === undefined ? 'out' : 'in';
  }
}

/** The code leaves the address bar and the history at once. */
function takeCode(): string | undefined {
  const [, code, rest = ''] = /^#code=([\w-]{1,128})(.*)$/.exec(location.hash) ?? [];
  if (code === undefined) return undefined;
  history.replaceState(null, '', `/${rest === '' ? '' : `#${rest}`}`);
  refreshPlace();
  return code;
}

/** A server that was started without tokens answers to anyone. */
async function openToAll(): Promise<SignIn> {
  try {
    await ask('GET', '/v1/health');
    return 'in';
  } catch {
    return 'out';
  }
}
