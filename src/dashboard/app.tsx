// The frame around every page: where one can go, whether the server answers, and which keys count.

import { useEffect } from 'preact/hooks';
import { followInbox } from './core/inbox.ts';
import { followProcesses } from './core/processes.ts';
import { place } from './core/route.ts';
import { signIn } from './core/token.ts';
import { HostPage } from './pages/host.tsx';
import { InboxPage } from './pages/inbox.tsx';
import { ProcessPage } from './pages/process.tsx';
import { ProcessesPage } from './pages/processes.tsx';
import { SignInPage } from './pages/sign-in.tsx';
import { Shell } from './parts/shell.tsx';
import { StopDialog } from './parts/stop.tsx';

export function App() {
  if (signIn.value === 'unknown') return <p class="waiting">Signing in …</p>;
  if (signIn.value === 'out') return <SignInPage />;
  return <SignedIn />;
}

function SignedIn() {
  useEffect(followProcesses, []);
  useEffect(followInbox, []);
  return (
    <Shell>
      <Page />
      <StopDialog />
    </Shell>
  );
}

function Page() {
  const [page = '', owner = '', id = ''] = place.value.parts;
  switch (page) {
    case 'inbox':
      return <InboxPage />;
    case 'host':
      return <HostPage />;
    case 'p':
      return <ProcessPage key={`${owner}/${id}`} />;
    default:
      return <ProcessesPage />;
  }
}
