// The HTML around a page: header with search, side bar, list of headings, neighbours. Everything is relative, so that the same files
// work below any address and from a disk. No script and no style stands in the page itself.
import { dirname, relative } from 'node:path';
import { escapeHtml } from './highlight.mjs';

export function layOut(page, { groups, assets, version }) {
  const { target, title, html, headings } = page;
  const link = (to) => relative(dirname(target), to) || '.';
  const order = groups.flatMap(({ pages }) => pages);
  const at = order.indexOf(page);
  const parts = headings.filter(({ depth }) => depth === 2);
  const root = link('.') === '.' ? '' : `${link('.')}/`;
  return `<!doctype html>
<html lang="en" data-root="${root}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(target === 'index.html' ? 'Holdfast' : `${title} · Holdfast`)}</title>
<link rel="icon" href="${link(assets['icon.svg'])}">
<link rel="stylesheet" href="${link(assets['site.css'])}">
<script src="${link(assets['theme.js'])}"></script>
<script src="${link(assets['search-index.js'])}" defer></script>
<script src="${link(assets['site.js'])}" defer></script>
</head>
<body>
<a class="skip" href="#content">Skip to the text</a>
<header>
<button type="button" id="menu" aria-expanded="false" aria-controls="pages" aria-label="Pages"><span aria-hidden="true">☰</span></button>
<a class="brand" href="${link('index.html')}"><strong>Holdfast</strong> <small>${escapeHtml(version)}</small></a>
<div class="search" role="search">
<input id="query" type="search" placeholder="Search  /" aria-label="Search the documentation" role="combobox" aria-expanded="false" aria-controls="results" aria-autocomplete="list" autocomplete="off" spellcheck="false">
<div id="results" role="listbox" aria-label="Results" hidden></div>
</div>
<button type="button" id="theme" aria-label="Change between light and dark"><span aria-hidden="true">◐</span></button>
</header>
<div class="columns">
<nav id="pages" aria-label="Pages">
${groups.map((group) => groupHtml(group, page, link)).join('\n')}
</nav>
<main id="content" tabindex="-1">
<article>
${html}</article>
${at < 0 ? '' : neighbours(order[at - 1], order[at + 1], link)}
</main>
${parts.length > 1 ? `<aside aria-label="On this page"><h2>On this page</h2><ul>${parts.map(({ id, title: name }) => `<li><a href="#${id}">${escapeHtml(name)}</a></li>`).join('')}</ul></aside>` : ''}
</div>
</body>
</html>
`;
}

function groupHtml({ title, pages }, current, link) {
  const rows = pages.map((page) => {
    const here = page === current ? ' aria-current="page"' : '';
    return `<li><a href="${link(page.target)}"${here}>${escapeHtml(page.short)}</a></li>`;
  });
  return `<h2>${escapeHtml(title)}</h2>\n<ul>${rows.join('')}</ul>`;
}

function neighbours(before, after, link) {
  const one = (page, words, rel) =>
    page
      ? `<a rel="${rel}" href="${link(page.target)}"><small>${words}</small> ${escapeHtml(page.short)}</a>`
      : '<span></span>';
  return `<nav class="neighbours" aria-label="Neighbouring pages">${one(before, 'Before', 'prev')}${one(after, 'Next', 'next')}</nav>`;
}
