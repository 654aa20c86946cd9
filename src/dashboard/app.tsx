// The frame around every page: where one can go, whether the server answers, and which keys count.

import { place } from './core/route.ts';
import { signIn } from './core/token.ts';
import { HostPage } from './pages/host.tsx';
import { SignInPage } from './pages/sign-in.tsx';
import { Shell } from './parts/shell.tsx';

export function App() {
  if (signIn.value === 'unknown') return <p class="waiting">Signing in …</p>;
  if (signIn.value === 'out') return <SignInPage />;
  return (
    <Shell>
      <Page />
    </Shell>
  );
}

function Page() {
  const [page = 'host'] = place.value.parts;
  switch (page) {
    default:
      return <HostPage />;
  }
}
