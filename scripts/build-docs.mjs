// Builds the documentation: the Markdown of docs/, with tables made from the built program, becomes a folder of pages that the server
// serves below /docs and that can be opened from the disk.
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { layOut } from './docs/layout.mjs';
import { insertSources, insertTables, render } from './docs/markdown.mjs';
import { arrange, findPages } from './docs/navigation.mjs';
import { makeTables } from './docs/tables.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const ASSETS = join(root, 'scripts', 'docs', 'assets');

/** `built` is the folder of the built program; the site is put in place as a whole. */
export async function buildDocs(built) {
  const [site, next, old] = ['docs', 'docs.next', 'docs.old'].map((name) => join(built, name));
  for (const folder of [next, old]) rmSync(folder, { recursive: true, force: true });
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const tables = await makeTables(built);
  const pages = findPages(root);
  const targets = new Map(pages.map(({ source, target }) => [source, target]));
  const write = (name, content) => {
    mkdirSync(dirname(join(next, name)), { recursive: true });
    writeFileSync(join(next, name), content);
  };
  const copy = (file) => {
    mkdirSync(join(next, 'files'), { recursive: true });
    cpSync(file, join(next, 'files', basename(file)));
    return `files/${basename(file)}`;
  };
  const firstIn = (folder) => pages.find(({ source }) => dirname(source) === folder)?.target;
  const linkTo = (file) =>
    targets.get(file) ?? targets.get(join(file, 'README.md')) ?? firstIn(file);
  for (const page of pages) {
    const text = readFileSync(join(root, page.source), 'utf8');
    const whole = insertSources(insertTables(text, tables), root);
    Object.assign(page, render(whole, { root, ...page, linkTo, copy }));
    page.title = page.headings[0]?.title ?? page.target;
    page.short = /^<!-- short: (.*) -->$/m.exec(text)?.[1] ?? page.title;
  }
  const assets = Object.fromEntries(
    readdirSync(ASSETS).map((name) => [name, readFileSync(join(ASSETS, name), 'utf8')]),
  );
  assets['search-index.js'] = searchIndex(pages);
  const names = {};
  for (const [name, content] of Object.entries(assets)) {
    names[name] = hashedName(name, content);
    write(names[name], content);
  }
  const groups = arrange(pages);
  for (const page of pages) write(page.target, layOut(page, { groups, assets: names, version }));
  if (existsSync(site)) renameSync(site, old);
  renameSync(next, site);
  rmSync(old, { recursive: true, force: true });
}

/** So that a browser may keep it for ever. */
function hashedName(name, content) {
  const hash = createHash('sha256').update(content).digest('hex').slice(0, 10);
  const end = extname(name);
  return `${basename(name, end)}.${hash}${end}`;
}

/** Pages for those who work on the project are found by their headings and beginnings: in full they are half of the index. */
const IN_BRIEF = /^(?:adr|project)\/|^rules/;
const BRIEF_CHARS = 160;

/** A script and not JSON: a page from the disk may load scripts, but may not fetch. */
function searchIndex(pages) {
  const rows = pages.map(({ target, title, sections }) => [
    target,
    title,
    sections.map(({ id, title: heading, text }) => [
      id,
      heading,
      IN_BRIEF.test(target) ? text.slice(0, BRIEF_CHARS) : text,
    ]),
  ]);
  return `globalThis.holdfastSearch = JSON.parse(${JSON.stringify(JSON.stringify(rows))});\n`;
}
