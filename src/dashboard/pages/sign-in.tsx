// What a page shows that has no session: how to get a link, and why the last one did not work.

import { signInProblem } from '../core/sign-in.ts';
import { Snippet } from '../parts/snippet.tsx';

export function SignInPage() {
  const problem = signInProblem.value;
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
