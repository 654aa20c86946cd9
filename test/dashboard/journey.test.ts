// The core journey of a person through the dashboard, in a real browser.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasBrowser, openPage, signInLink, startBrowser } from '../support/browser.ts';
import { serve, type Served } from '../support/coder-client.ts';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What a checker for accessibility finds, each with the first place. */
async function accessFaults(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  return page.evaluate(async () => {
    interface Found {
      id: string;
      nodes: { html: string; failureSummary: string }[];
    }
    const checker = (globalThis as unknown as { axe: { run(): Promise<{ violations: Found[] }> } })
      .axe;
    const { violations } = await checker.run();
    return violations.map(
      ({ id, nodes: [node] }) => `${id}: ${node?.html} ${node?.failureSummary}`,
    );
  });
}

describe.skipIf(!hasBrowser)('a person and the dashboard', () => {
  let browser: Browser;
  let served: Served;
  beforeAll(async () => {
    [browser, served] = await Promise.all([startBrowser(), serve()]);
  });
  afterAll(async () => {
    await browser.close();
    await served.stop();
  });

  it('[DB3] signs in by the printed link, which leaves the address at once and works for nobody else', async () => {
    const link = await signInLink(served.home);
    const { page, faults } = await openPage(browser);
    const sent: string[] = [];
    page.on('request', (request) =>
      sent.push(`${request.url()} ${JSON.stringify(request.headers())}`),
    );
    await page.goto(link);
    await page.getByRole('heading', { name: 'Signed-in pages' }).waitFor();
    const code = link.slice(link.indexOf('=') + 1);
    expect(page.url()).not.toContain(code);
    expect(sent.filter((each) => each.includes(code))).toEqual([]);
    expect(await page.context().cookies()).toEqual([]);
    const other = await openPage(browser);
    await other.page.goto(link);
    await other.page.getByText('This sign-in link was used already').waitFor();
    expect([...faults, ...other.faults]).toEqual([]);
  });

  it('[DB7] every page passes a checker for accessibility, dark and light, wide and narrow', async () => {
    for (const colorScheme of ['dark', 'light'] as const)
      for (const width of [1280, 390]) {
        const { page, faults } = await openPage(browser, {
          colorScheme,
          viewport: { width, height: 800 },
        });
        await page.goto(served.server.url);
        await page.getByText('needs a sign-in link').waitFor();
        expect(await accessFaults(page)).toEqual([]);
        await page.goto(await signInLink(served.home));
        await page.getByRole('heading', { name: 'Health' }).waitFor();
        expect(await accessFaults(page)).toEqual([]);
        expect(faults).toEqual([]);
      }
  });
});
