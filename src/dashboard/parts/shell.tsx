// Header, navigation and footer.

import type { ComponentChildren } from 'preact';
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { inbox } from '../core/inbox.ts';
import { shownKeys, useKeys, type Key } from '../core/keyboard.ts';
import { needs } from '../core/needs.ts';
import { nowMs } from '../core/now.ts';
import { processes } from '../core/processes.ts';
import { go, linkTo, place } from '../core/route.ts';
import { letterKeys, theme } from '../core/settings.ts';
import { isShare } from '../core/token.ts';
import { connection } from '../core/watch.ts';
import { clockText, countText, durationText } from '../model/words.ts';
import { Dialog } from './dialog.tsx';
import { commandsHere, Palette } from './palette.tsx';

interface Entry {
  readonly page: string;
  readonly title: string;
  readonly key: string;
  readonly count?: () => number;
}

const running = (): number => processes.value.filter(({ outcome }) => !outcome).length;

const entries: readonly Entry[] = [
  { page: '', title: 'Processes', key: 'g p', count: running },
  {
    page: 'inbox',
    title: 'Inbox',
    key: 'g i',
    count: () => needs.value.length + inbox.value.length,
  },
  { page: 'wall', title: 'Wall', key: 'g w' },
  { page: 'search', title: 'Search', key: 'g s' },
  { page: 'host', title: 'Host', key: 'g h' },
];

const NEXT_THEME = { system: 'dark', dark: 'light', light: 'system' } as const;

export function Shell({ children }: { readonly children: ComponentChildren }) {
  const help = useSignal<readonly Key[] | undefined>(undefined);
  const palette = useSignal<readonly Key[] | undefined>(undefined);
  useKeys([
    ...entries.map(({ page, key }) => ({
      keys: key,
      run: () => go(linkTo(page === '' ? [] : [page])),
    })),
    { keys: '?', label: 'keys', run: () => (help.value = shownKeys()) },
    {
      keys: 'Ctrl+k',
      label: 'go to',
      inFields: true,
      run: () => (palette.value = commandsHere()),
    },
  ]);
  return (
    <div class="shell">
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <header class="top">
        <span class="brand">Holdfast</span>
        <span class="stretch" />
        <NeedCount />
        <ConnectionState />
        <button
          type="button"
          class="quiet"
          onClick={() => (theme.value = NEXT_THEME[theme.value])}
          aria-label={`Colours: ${theme.value}`}
        >
          {theme.value === 'system' ? '◐' : theme.value === 'dark' ? '●' : '○'}{' '}
          <span class="wide">{theme.value}</span>
        </button>
        <button type="button" class="quiet wide" onClick={() => (help.value = shownKeys())}>
          ? keys
        </button>
      </header>
      <nav class="side" aria-label="Pages">
        {isShare.value ? (
          <p class="muted shared-words">
            Shared with you: you see this process and change nothing.
          </p>
        ) : (
          entries.map((entry) => <NavLink key={entry.page} entry={entry} />)
        )}
      </nav>
      <div class="content" id="content">
        <LostBar />
        {children}
      </div>
      <Footer />
      {palette.value && <Palette here={palette.value} close={() => (palette.value = undefined)} />}
      {help.value && <Help keys={help.value} close={() => (help.value = undefined)} />}
    </div>
  );
}

function NavLink({ entry: { page, title, count } }: { readonly entry: Entry }) {
  const [first = ''] = place.value.parts;
  const current = first === 'p' ? '' : first;
  return (
    <a
      href={linkTo(page === '' ? [] : [page])}
      {...(current === page && { 'aria-current': 'page' as const })}
    >
      {title}
      {count && <span class="count">{countText(count())}</span>}
    </a>
  );
}

/** Also in the title of the window, for a page in the background. */
function NeedCount() {
  const count = needs.value.length;
  useEffect(() => {
    document.title = count === 0 ? 'Holdfast' : `(${count}) Holdfast`;
  }, [count]);
  if (count === 0) return null;
  return (
    <a class="warn need-count" href={linkTo(['inbox'])}>
      <span aria-hidden="true">‼</span> {count === 1 ? '1 needs you' : `${count} need you`}
    </a>
  );
}

function ConnectionState() {
  const live = connection.value.state === 'live';
  return (
    <span class={live ? 'good' : 'warn'} role="status">
      <span aria-hidden="true">{live ? '●' : '◌'}</span> {live ? 'live' : 'not connected'}
    </span>
  );
}

/** Shown only when it lasts: a restart of the server takes less. */
const WORTH_SAYING_MS = 1500;

function LostBar() {
  const now = connection.value;
  if (now.state === 'live' || nowMs.value - now.sinceMs < WORTH_SAYING_MS) return null;
  return (
    <p class="lost" role="alert">
      The server has not answered for {durationText(nowMs.value - now.sinceMs)} (since{' '}
      {clockText(now.sinceMs)}). Processes keep running; this page continues when it is back.
    </p>
  );
}

function Footer() {
  return (
    <footer class="keys" aria-label="Keys">
      {shownKeys().map(({ keys, label }) => (
        <span key={keys}>
          <kbd>{keys}</kbd> {label}
        </span>
      ))}
    </footer>
  );
}

const EVERYWHERE: readonly [string, string][] = [
  ['g p', 'processes'],
  ['g i', 'inbox'],
  ['g w', 'wall'],
  ['g s', 'search'],
  ['g h', 'host'],
  ['Ctrl+k', 'go to a process, > command, / search'],
  ['?', 'this help'],
  ['Esc', 'back, close'],
];

interface HelpProps {
  /** Those of the page below. */
  readonly keys: readonly Key[];
  readonly close: () => void;
}

function Help({ keys: known, close }: HelpProps) {
  const here = known.map(({ keys, label = '' }): [string, string] => [keys, label]);
  const rows = new Map([...EVERYWHERE, ...here]);
  return (
    <Dialog title="Keys" close={close}>
      <dl class="help">
        {Array.from(rows, ([keys, label]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{label}</dd>
          </div>
        ))}
      </dl>
      <label class="choice">
        <input
          type="checkbox"
          checked={letterKeys.value === 'on'}
          onChange={({ currentTarget }) =>
            (letterKeys.value = currentTarget.checked ? 'on' : 'off')
          }
        />
        Single letters are keys
      </label>
      <p class="actions">
        <button type="button" onClick={close}>
          Close
        </button>
      </p>
    </Dialog>
  );
}
