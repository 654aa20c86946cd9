// Turns the Markdown of one page into HTML, its list of headings, and the sections that the search looks through.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { Marked } from 'marked';
import { escapeHtml, highlight } from './highlight.mjs';

/** A heading may name its place itself: "## POST /v1/run {#run}". */
const OWN_ID = /\s*\{#([\w.-]+)\}\s*$/;

/** Places as GitHub makes them, so that a link works in both. */
function slugOf(text) {
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-');
}

const UNESCAPED = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'" };

function plainText(html) {
  return html
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/&(?:amp|lt|gt|quot|#39);/g, (entity) => UNESCAPED[entity])
    .replaceAll(/\s+/g, ' ')
    .trim();
}

/**
 * `linkTo` maps a file of the clone to its page, if it has one; `copy` takes a picture or a file into the site and returns its name.
 */
export function render(text, { root, source, target, linkTo, copy }) {
  const headings = [];
  const used = new Map();
  const placeOf = (heading) => {
    const own = OWN_ID.exec(heading)?.[1];
    const base = own ?? slugOf(heading);
    const count = used.get(base) ?? 0;
    used.set(base, count + 1);
    return count === 0 ? base : `${base}-${count}`;
  };
  const from = (file) => join(dirname(source), file);
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text: raw }) {
        const id = placeOf(plainText(this.parser.parseInline(tokens, this.parser.textRenderer)));
        const html = this.parser.parseInline(tokens).replace(OWN_ID, '');
        const title = plainText(html);
        headings.push({ depth, id, title });
        if (depth === 1) return `<h1 id="${id}">${html}</h1>\n`;
        const label = escapeHtml(`Link to “${title}”`);
        return `<h${depth} id="${id}"${raw.includes('{#') ? ' class="item"' : ''}>${html}<a class="anchor" href="#${id}" aria-label="${label}"><span aria-hidden="true">#</span></a></h${depth}>\n`;
      },
      code({ text: code, lang = '' }) {
        const [language = ''] = lang.split(' ');
        const name = language === '' || language === 'text' ? 'drawing' : language;
        // A block that scrolls is reached by the keyboard.
        return `<div class="code ${name}"><pre tabindex="0"><code>${highlight(code, language)}</code></pre></div>\n`;
      },
      link({ href, title, tokens }) {
        const inside = this.parser.parseInline(tokens);
        const hint = title ? ` title="${escapeHtml(title)}"` : '';
        return `<a href="${escapeHtml(resolve(href))}"${hint}>${inside}</a>`;
      },
      image({ href, text: alt }) {
        const file = join(root, from(href));
        if (href.endsWith('.svg')) return inlinePicture(readFileSync(file, 'utf8'), alt);
        return `<img src="${relative(dirname(target), copy(file))}" alt="${escapeHtml(alt)}" loading="lazy">`;
      },
      table(token) {
        const row = (cells, tag) =>
          `<tr>${cells.map((cell) => `<${tag}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join('')}</tr>`;
        const named = token.header.some(({ text: name }) => name !== '');
        const head = named
          ? `<thead>${row(token.header, 'th').replaceAll('<th></th>', '<td></td>')}</thead>`
          : '';
        const body = token.rows.map((cells) => row(cells, 'td')).join('\n');
        return `<div class="table" tabindex="0"><table>${head}<tbody>${body}</tbody></table></div>\n`;
      },
    },
  });
  const resolve = (href) => {
    if (/^[a-z]+:|^#/.test(href)) return href;
    const [path, hash] = href.split('#');
    const page = linkTo(from(path).replace(/\/$/, ''));
    const file = join(root, from(path));
    if (page === undefined && /\.json$/.test(path)) return relative(dirname(target), copy(file));
    if (page === undefined) return href;
    const place = hash === undefined ? '' : `#${hash}`;
    return `${relative(dirname(target), page)}${place}`;
  };
  const html = marked.parse(text);
  return { html, headings, sections: sectionsOf(html, headings) };
}

/** Inside the page, so that it has the colours of the page; its own style is for those who look at the file. */
function inlinePicture(svg, alt) {
  const inside = svg.replace(/^[^]*?<svg/, '<svg').replace(/<style>[^]*?<\/style>/, '');
  return inside
    .replace('<svg', `<svg role="img" aria-label="${escapeHtml(alt)}" class="picture"`)
    .trim();
}

function sectionsOf(html, headings) {
  const parts = html.split(/<h[1-6] id="[^"]*"[^>]*>[^]*?<\/h[1-6]>/);
  return headings.map(({ id, title }, at) => ({ id, title, text: plainText(parts[at + 1] ?? '') }));
}

/** A line "<!-- made: NAME -->" is where a table of the program goes. */
const MADE = /^<!-- made: (\S+) -->$/gm;

export function insertTables(text, tables) {
  return text.replaceAll(MADE, (_, name) => {
    const make = tables[name];
    if (!make) throw new Error(`there is no table "${name}"`);
    return make();
  });
}

/** A line "<!-- source: FILE -->" is where the text of a file of the clone goes. */
export function insertSources(text, root) {
  return text.replaceAll(/^<!-- source: (\S+) -->$/gm, (_, name) => {
    const file = join(root, name);
    if (!existsSync(file)) throw new Error(`there is no file ${name}`);
    return `\`\`\`${name.replace(/^.*\./, '')}\n${readFileSync(file, 'utf8').trimEnd()}\n\`\`\``;
  });
}
