// The frame around every page: where one can go, whether the server answers, and which keys count.

import { useEffect } from 'preact/hooks';
import { followInbox } from './core/inbox.ts';
import { followNeeds } from './core/needs.ts';
import { followProcesses } from './core/processes.ts';
import { place } from './core/route.ts';
import { isShare, signIn } from './core/token.ts';
import { HostPage } from './pages/host.tsx';
import { InboxPage } from './pages/inbox.tsx';
import { ProcessPage } from './pages/process.tsx';
import { ProcessesPage } from './pages/processes.tsx';
import { SignInPage } from './pages/sign-in.tsx';
import { Lazy } from './parts/lazy.tsx';
import { Shell } from './parts/shell.tsx';
import { AgainDialog } from './acts/again.tsx';
import { ShareDialog } from './acts/share.tsx';
import { StopDialog } from './acts/stop.tsx';
import { StopManyDialog } from './acts/stop-many.tsx';

export function App() {
  if (signIn.value === 'unknown') return <p class="waiting">Signing in …</p>;
  if (signIn.value === 'out') return <SignInPage />;
  return <SignedIn />;
}

function SignedIn() {
  useEffect(followProcesses, []);
  useEffect(() => (isShare.value ? undefined : followInbox()), [isShare.value]);
  useEffect(() => (isShare.value ? undefined : followNeeds()), [isShare.value]);
  return (
    <Shell>
      <Page />
      <StopDialog />
      <StopManyDialog />
      <AgainDialog />
      <ShareDialog />
    </Shell>
  );
}

const loadSearch = async () => (await import('./search/search-page.tsx')).SearchPage;
const loadCompare = async () => (await import('./compare/compare-page.tsx')).ComparePage;
const loadWall = async () => (await import('./wall/wall-page.tsx')).WallPage;

function Page() {
  const [page = '', owner = '', id = ''] = place.value.parts;
  switch (page) {
    case 'inbox':
      return <InboxPage />;
    case 'wall':
      return <Lazy key="wall" what="The wall" load={loadWall} props={{}} />;
    case 'search':
      return <Lazy key="search" what="The search" load={loadSearch} props={{}} />;
    case 'compare':
      return <Lazy key="compare" what="The comparison" load={loadCompare} props={{}} />;
    case 'host':
      return <HostPage />;
    case 'p':
      return <ProcessPage key={`${owner}/${id}`} />;
    default:
      return <ProcessesPage />;
  }
}
