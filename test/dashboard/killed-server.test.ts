// An open page outlives its server: killed at any moment, the next one continues the same log without a byte twice or missing.
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasBrowser, openPage, signInLink, startBrowser } from '../support/browser.ts';
import { Place, Running } from '../support/command-line.ts';
import { onCleanup } from '../support/hosts.ts';

const ROUNDS = process.env['DASHBOARD'] ? 50 : 3;
const LINES = 20;
/** A server is started in each: seconds on a busy machine. */
const ROUND_MS = 40_000;

describe.skipIf(!hasBrowser)('a page whose server is killed', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser.close());

  async function serve(place: Place, ...more: string[]): Promise<Running> {
    const server = new Running(['serve', '--json', ...more], { env: place.env });
    await server.until('stdout', '\n');
    return server;
  }

  it(
    '[DB16] goes on with the next server, in the same session, with every line once',
    async () => {
      const place = new Place();
      onCleanup(() => place.close());
      let server = await serve(place);
      const script = `while read round; do for n in $(seq ${LINES}); do echo "$round-$n"; done; done`;
      const id = await place.background('--stdin', script);
      const { page, faults } = await openPage(browser, {
        // All lines fit: those in view are all there are.
        viewport: { width: 1000, height: ROUNDS * LINES * 18 + 400 },
      });
      await page.goto(await signInLink(place.home, id));
      await page.getByRole('log').waitFor();
      const expected: string[] = [];
      for (let round = 1; round <= ROUNDS; round += 1) {
        server.child.kill('SIGKILL');
        await server.ended;
        await place.run('send', id, String(round));
        server = await serve(place, '--resume');
        for (let n = 1; n <= LINES; n += 1) expected.push(`${round}-${n}`);
        await page.getByText(`${round}-${LINES}`, { exact: true }).waitFor();
        expect(await page.locator('.log-lines .line').allTextContents()).toEqual(expected);
      }
      expect(faults).toEqual([]);
    },
    ROUNDS * ROUND_MS,
  );

  it('[DB16] loads a log again when the server was not there for its first request', async () => {
    const place = new Place();
    onCleanup(() => place.close());
    await serve(place);
    const id = await place.finished('echo late');
    const { page, faults } = await openPage(browser);
    let refused = 0;
    await page.route(
      (url) => url.pathname === `/v1/processes/${id}`,
      async (route) => {
        refused += 1;
        await route.abort('connectionrefused');
      },
      { times: 1 },
    );
    await page.goto(await signInLink(place.home, id));
    await page.getByText('late', { exact: true }).waitFor();
    expect([refused, faults]).toEqual([1, []]);
  });
});
