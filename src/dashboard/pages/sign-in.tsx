// What a page shows that has no session: how to get a link, and why the last one did not work.

import { signInProblem } from '../core/sign-in.ts';
import { shareIsOver } from '../core/token.ts';
import { Snippet } from '../parts/snippet.tsx';

export function SignInPage() {
  const problem = signInProblem.value;
  if (shareIsOver.value)
    return (
      <main class="sign-in">
        <h1>This shared link is over</h1>
        <p>Its time has passed, or it was revoked. Ask the person who shared it for a new one.</p>
      </main>
    );
  return (
    <main class="sign-in">
      <h1>Holdfast</h1>
      {problem && (
        <p class="problem" role="alert">
          {problem.message}
        </p>
      )}
      <p>This page needs a sign-in link. Run this where Holdfast runs:</p>
      <Snippet text="holdfast dashboard" />
      <p class="muted">
        The link works once and within two minutes. Nobody who sees it later can use it.
      </p>
    </main>
  );
}
