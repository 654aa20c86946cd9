// The documentation as the server serves it, and as files: whole, under a strict policy, readable by everyone, without a dead link.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errors } from '../../src/protocol/errors.ts';
import { nativeOperations, type NativeOperation } from '../../src/server/native/operations.ts';
import { accessFaults, hasBrowser, openPage, useDashboard } from '../support/browser.ts';
import { serve, type Served } from '../support/coder-client.ts';
import { root } from '../support/command-line.ts';
import { NativeClient } from '../support/native-client.ts';
import { isSlowRun } from '../support/slow.ts';

const site = join(root, 'dist/docs');
const files = readdirSync(site, { recursive: true, encoding: 'utf8' });
const pages = files.filter((name) => name.endsWith('.html'));
const textOf = (page: string): string => readFileSync(join(site, page), 'utf8');

describe('the documentation over HTTP', () => {
  let served: Served;
  let nobody: NativeClient;

  beforeAll(async () => {
    served = await serve();
    nobody = new NativeClient({ host: '127.0.0.1', port: served.port });
  });
  afterAll(() => served.stop());

  const statuses = (names: readonly string[]): Promise<string[]> =>
    Promise.all(names.map(async (name) => `${name} ${(await nobody.get(`/docs/${name}`)).status}`));

  it('[API29] needs no token, allows only its own files, and begins at /docs', async () => {
    const first = await nobody.get('/docs');
    expect([first.status, first.headers['location']]).toEqual([302, 'docs/']);
    const { status, headers, bytes } = await nobody.get('/docs/');
    expect(status).toBe(200);
    expect(bytes.toString()).toBe(textOf('index.html'));
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    });
    const some = files.filter((name) => /\.\w+$/.test(name)).slice(0, 20);
    expect(await statuses(some)).toEqual(some.map((name) => `${name} 200`));
  });

  it('[API29] a name leads nowhere but into its folder', async () => {
    const outside = ['..%2findex.js', '%2e%2e/index.js', '..%5cindex.js', '%2fetc%2fpasswd', '.'];
    const broken = [
      '%00',
      'index.html%00.css',
      'adr',
      'wire/',
      'nothing.html',
      'wire/nothing.html',
      `${'n'.repeat(300)}.html`,
    ];
    const names = [...outside, ...broken];
    expect(await statuses(names)).toEqual(names.map((name) => `${name} 404`));
  });

  it('[API29] the page on HTTP has every operation, and the page on errors every error', () => {
    const http = textOf('reference/http.html');
    for (const { path, summary } of Object.values<NativeOperation>(nativeOperations)) {
      expect(http).toContain(path.replace(/:(\w+)/g, '{$1}'));
      expect(http).toContain(summary);
    }
    const table = textOf('errors.html');
    for (const code of Object.keys(errors)) expect(table).toContain(`<code>${code}</code>`);
  });
});

describe('the files of the documentation', () => {
  it('[DOC1] no link of a page is dead, and every picture and script is there', () => {
    const places = new Map(
      pages.map((page) => [
        page,
        new Set(Array.from(textOf(page).matchAll(/ id="([^"]*)"/g), ([, id]) => id)),
      ]),
    );
    const there = new Set(files);
    const dead = pages.flatMap((page) =>
      Array.from(textOf(page).matchAll(/ (?:href|src)="([^"]*)"/g), ([, to = '']) => to)
        .filter((to) => !/^https?:/.test(to))
        .filter((to) => {
          const [path = '', place] = to.split('#');
          const target = path === '' ? page : relative('.', join(dirname(page), path));
          if (!there.has(target)) return true;
          return place !== undefined && places.get(target)?.has(place) !== true;
        })
        .map((to) => `${page} links to ${to}`),
    );
    expect(dead).toEqual([]);
    expect(pages.length).toBeGreaterThan(50);
  });

  it('[DOC1] every page of docs/ is in the site, and no page has a script or a style in it', () => {
    const sources = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md'))
      .map((name) => name.replace(/README\.md$/, 'index.md').replace(/\.md$/, '.html'));
    expect(sources.filter((name) => !pages.includes(name))).toEqual([]);
    const inside = /<script>|<style|\sstyle=|\son\w+="|javascript:/i;
    expect(pages.filter((page) => inside.test(textOf(page)))).toEqual([]);
  });
});

describe.skipIf(!hasBrowser)('the documentation in a browser', () => {
  const dashboard = useDashboard();
  const open = async (path: string, options = {}) => {
    const watched = await openPage(dashboard.browser, options);
    await watched.page.goto(`http://127.0.0.1:${dashboard.served.port}/docs${path}`);
    return watched;
  };

  it('[DOC2] keeps its policy, asks no other origin, and is accessible in both themes, wide and on a phone', async () => {
    const { page, faults } = await open('');
    for (const path of isSlowRun ? pages : ['index.html', 'errors.html']) {
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.goto(`http://127.0.0.1:${dashboard.served.port}/docs/${path}`);
      if ((await themeOf(page)) === 'light') await page.click('#theme');
      expect(await accessFaults(page), `${path} dark`).toEqual([]);
      await page.click('#theme');
      expect(await themeOf(page)).toBe('light');
      await page.setViewportSize({ width: 390, height: 844 });
      expect(await accessFaults(page), `${path} light, on a phone`).toEqual([]);
      const width = await page.evaluate('document.documentElement.scrollWidth');
      expect({ path, width }).toEqual({ path, width: 390 });
    }
    expect(faults).toEqual([]);
  });

  it('[DOC3] the search finds a section by its words, with the keyboard alone', async () => {
    const { page, faults } = await open('/command-line.html');
    await searchFor(page, 'exit codes run');
    await page.waitForURL(/command-line\.html#exit-codes$/);
    await page.keyboard.press('/');
    await page.keyboard.insertText('zzqqxx');
    await page.getByText('No page has all of these words.').waitFor();
    expect(await accessFaults(page)).toEqual([]);
    await page.keyboard.press('Escape');
    expect(await page.isHidden('#results')).toBe(true);
    expect(faults).toEqual([]);
  });

  it('[DOC3] opened from the disk, a page has its style, its theme and its search', async () => {
    const { page } = await openPage(dashboard.browser);
    await page.goto(pathToFileURL(join(site, 'wire/native.html')).href);
    expect(await page.evaluate('getComputedStyle(document.body).margin')).toBe('0px');
    await searchFor(page, 'exit codes run');
    await page.waitForURL(/\/command-line\.html#exit-codes$/);
    await page.click('#theme');
    expect(await themeOf(page)).toBe('light');
  });

  it('[DOC2] on a phone the list of pages opens and leads on', async () => {
    const { page } = await open('/', { viewport: { width: 390, height: 844 } });
    expect(await page.isVisible('#pages')).toBe(false);
    await page.click('#menu');
    await page.click('#pages a[href="errors.html"]');
    await page.waitForURL(/errors\.html$/);
    expect(await page.isVisible('#pages')).toBe(false);
  });
});

async function searchFor(page: Page, words: string): Promise<void> {
  await page.keyboard.press('/');
  await page.keyboard.insertText(words);
  await page.locator('#results a').first().waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Enter');
}

function themeOf(page: Page): Promise<string | undefined> {
  return page.evaluate('document.documentElement.dataset.theme');
}
