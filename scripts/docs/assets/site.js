// What a page of the documentation can do: search, change its theme, open the list of pages, copy a block of code.
'use strict';

const root = document.documentElement;
const at = (id) => document.getElementById(id);

at('theme').addEventListener('click', () => {
  const dark = root.dataset.theme
    ? root.dataset.theme === 'dark'
    : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
  try {
    localStorage.setItem('holdfast-docs-theme', root.dataset.theme);
  } catch {
    // Storage is refused: it holds until the next page.
  }
});

at('menu').addEventListener('click', () => {
  const open = at('menu').getAttribute('aria-expanded') !== 'true';
  at('menu').setAttribute('aria-expanded', String(open));
  at('pages').classList.toggle('open', open);
});

for (const block of document.querySelectorAll('.code:not(.drawing)')) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'copy';
  button.textContent = 'Copy';
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(typedIn(block));
    button.textContent = 'Copied';
    setTimeout(() => (button.textContent = 'Copy'), 1500);
  });
  if (navigator.clipboard) block.append(button);
}

/** Of a session only what was typed. */
function typedIn(block) {
  const text = block.querySelector('code').textContent;
  if (!block.classList.contains('console')) return text;
  return text
    .split('\n')
    .filter((line) => /^[$>] /.test(line))
    .map((line) => line.slice(2))
    .join('\n');
}

const query = at('query');
const results = at('results');
let chosen = -1;

/** Sections that have every word, best first: a word in the title counts more than one in the text, a whole one more than a part. */
function find(words) {
  const found = [];
  for (const [page, title, sections] of globalThis.holdfastSearch ?? [])
    for (const [place, heading, text] of sections) {
      let score = 0;
      for (const word of words) {
        const points = 8 * scoreIn(heading, word) + 3 * scoreIn(title, word) + scoreIn(text, word);
        if (points === 0) {
          score = 0;
          break;
        }
        score += points;
      }
      if (score > 0)
        found.push({ page, title, place, heading, text, score: score / weightOf(page) });
    }
  return found.sort((a, b) => b.score - a.score).slice(0, 12);
}

/** Decisions and rules are for those who work on it, protocols for those who write a client. */
function weightOf(page) {
  if (/^(?:adr|project)\/|^(?:rules|measurements)/.test(page)) return 4;
  return page.startsWith('wire/') ? 2 : 1;
}

function scoreIn(text, word) {
  const low = text.toLowerCase();
  const found = low.indexOf(word);
  if (found < 0) return 0;
  const isWord = (letter) => /[\p{L}\p{N}]/u.test(letter ?? '');
  const begins = !isWord(low[found - 1]);
  return begins ? (isWord(low[found + word.length]) ? 2 : 4) : 1;
}

function snippetOf({ text }, words) {
  const first = Math.min(
    ...words.map((word) => text.toLowerCase().indexOf(word)).filter((n) => n >= 0),
  );
  const start = Number.isFinite(first) ? Math.max(0, first - 40) : 0;
  return `${start > 0 ? '… ' : ''}${text.slice(start, start + 140)}`;
}

function show() {
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length === 0 ? [] : find(words);
  chosen = found.length > 0 ? 0 : -1;
  results.replaceChildren(...found.map((each, number) => row(each, words, number)));
  if (words.length > 0 && found.length === 0) {
    const none = document.createElement('p');
    none.textContent = 'No page has all of these words.';
    none.setAttribute('role', 'option');
    results.append(none);
  }
  const open = words.length > 0;
  results.hidden = !open;
  query.setAttribute('aria-expanded', String(open));
  mark();
}

function row(found, words, number) {
  const link = document.createElement('a');
  link.href = `${root.dataset.root}${found.page}#${found.place}`;
  link.id = `result-${number}`;
  link.tabIndex = -1;
  link.setAttribute('role', 'option');
  const heading = document.createElement('strong');
  heading.textContent =
    found.heading === found.title ? found.title : `${found.title} › ${found.heading}`;
  const text = document.createElement('span');
  text.textContent = snippetOf(found, words);
  link.append(heading, text);
  return link;
}

function mark() {
  const links = results.querySelectorAll('a');
  for (const [number, link] of links.entries())
    link.setAttribute('aria-selected', String(number === chosen));
  if (chosen >= 0) {
    query.setAttribute('aria-activedescendant', `result-${chosen}`);
    links[chosen].scrollIntoView({ block: 'nearest' });
  } else query.removeAttribute('aria-activedescendant');
}

function close() {
  results.hidden = true;
  query.setAttribute('aria-expanded', 'false');
}

query.addEventListener('input', show);
query.addEventListener('focus', () => query.value && show());
query.addEventListener('keydown', (event) => {
  const count = results.querySelectorAll('a').length;
  if (event.key === 'Escape') close();
  else if (event.key === 'Enter' && chosen >= 0) {
    const link = results.querySelectorAll('a')[chosen];
    close();
    link.click();
  } else if ((event.key === 'ArrowDown' || event.key === 'ArrowUp') && count > 0) {
    event.preventDefault();
    chosen = (chosen + (event.key === 'ArrowDown' ? 1 : count - 1)) % count;
    mark();
  }
});
document.addEventListener('click', (event) => {
  if (!event.target.closest('.search')) close();
});
document.addEventListener('keydown', (event) => {
  const typing = /^(?:INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? '');
  if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    query.focus();
    query.select();
  }
});
