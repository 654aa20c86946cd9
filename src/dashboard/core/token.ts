// The page's token and where it is kept. Storage belongs to one origin with its port, unlike a cookie, which a browser would
// send to every server on this machine.

import { signal } from '@preact/signals';

const KEY = 'holdfast.token';
const SHARE_KEY = 'holdfast.share';

/** out: a link is needed. unknown: not yet asked. */
export type SignIn = 'unknown' | 'in' | 'out';

export const signIn = signal<SignIn>('unknown');
/** The page was opened by a shared link: it shows one process and changes nothing. */
export const isShare = signal(sessionStorage.getItem(SHARE_KEY) !== null);
/** What was shown here was a shared link, and it is over. */
export const shareIsOver = signal(false);
/** Also when the tab is closed. */
export const staysSignedIn = signal(localStorage.getItem(KEY) !== null);

export function token(): string | undefined {
  return sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY) ?? undefined;
}

export function keepToken(held: string): void {
  forget();
  shareIsOver.value = false;
  (staysSignedIn.value ? localStorage : sessionStorage).setItem(KEY, held);
  signIn.value = 'in';
}

/** The token of a shared link; it is kept for this tab only. */
export function keepShare(held: string): void {
  sessionStorage.setItem(KEY, held);
  sessionStorage.setItem(SHARE_KEY, 'yes');
  isShare.value = true;
  shareIsOver.value = false;
  signIn.value = 'in';
}

/** The server no longer takes it. */
export function signedOut(): void {
  shareIsOver.value ||= isShare.peek();
  forget();
  signIn.value = 'out';
}

export function setStaysSignedIn(stays: boolean): void {
  const held = token();
  staysSignedIn.value = stays;
  if (held !== undefined) keepToken(held);
}

function forget(): void {
  sessionStorage.removeItem(KEY);
  sessionStorage.removeItem(SHARE_KEY);
  isShare.value = false;
  localStorage.removeItem(KEY);
}
