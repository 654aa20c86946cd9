// Header, navigation and footer.

import type { ComponentChildren } from 'preact';
import { go, linkTo, place } from '../core/route.ts';
import { shownKeys, useKeys } from '../core/keyboard.ts';
import { theme } from '../core/settings.ts';

interface Entry {
  readonly page: string;
  readonly title: string;
  readonly key: string;
}

const entries: readonly Entry[] = [{ page: 'host', title: 'Host', key: 'g h' }];

const NEXT_THEME = { system: 'dark', dark: 'light', light: 'system' } as const;

export function Shell({ children }: { readonly children: ComponentChildren }) {
  useKeys(entries.map(({ page, key }) => ({ keys: key, run: () => go(linkTo([page])) })));
  return (
    <div class="shell">
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <header class="top">
        <span class="brand">Holdfast</span>
        <span class="stretch" />
        <button
          type="button"
          class="quiet"
          onClick={() => (theme.value = NEXT_THEME[theme.value])}
          title="Colours: as the system, dark, light"
        >
          {theme.value}
        </button>
      </header>
      <nav class="side" aria-label="Pages">
        {entries.map((entry) => (
          <NavLink key={entry.page} entry={entry} />
        ))}
      </nav>
      <div class="content" id="content">
        {children}
      </div>
      <Footer />
    </div>
  );
}

function NavLink({ entry: { page, title } }: { readonly entry: Entry }) {
  const [current = 'host'] = place.value.parts;
  return (
    <a href={linkTo([page])} {...(current === page && { 'aria-current': 'page' as const })}>
      {title}
    </a>
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
