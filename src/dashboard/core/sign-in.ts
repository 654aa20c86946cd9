// Sign-in: the one-time code of the link becomes the page's token.

import { signal } from '@preact/signals';
import { ask, Problem } from './http.ts';
import { refreshPlace } from './route.ts';
import { keepShare, keepToken, signIn, token, type SignIn } from './token.ts';

/** Why the last attempt failed. */
export const signInProblem = signal<Problem | undefined>(undefined);

/** Called before anything else, and for a link that is opened in a tab that shows this page already. */
export function beginSession(): Promise<void> {
  const share = takeSecret(SHARE);
  if (share !== undefined) keepShare(share);
  const code = takeSecret(CODE);
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

const CODE = /^#code=([\w-]{1,128})(.*)$/;
const SHARE = /^#share=([\w-]{1,128})(.*)$/;

/** A code or a token leaves the address bar and the history at once. */
function takeSecret(pattern: RegExp): string | undefined {
  const [, secret, rest = ''] = pattern.exec(location.hash) ?? [];
  if (secret === undefined) return undefined;
  history.replaceState(null, '', `/${rest === '' ? '' : `#${rest}`}`);
  refreshPlace();
  return secret;
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
