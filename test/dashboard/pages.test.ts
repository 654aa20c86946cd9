// The pages of the dashboard beyond the list and one process, in a real browser.
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import {
  accessFaults,
  hasBrowser,
  openPage,
  signInLink,
  useDashboard,
  type Watched,
} from '../support/browser.ts';

describe.skipIf(!hasBrowser)('the pages of the dashboard', () => {
  const dashboard = useDashboard();

  async function terminal(script: string, name: string): Promise<string> {
    const argv = ['/bin/sh', '-c', script];
    const size = { cols: 60, rows: 10 };
    const { json } = await dashboard.client.post('/v1/terminals', { argv, name, size });
    return (json as { process: { id: string } }).process.id;
  }

  async function open(place: string): Promise<Watched> {
    const watched = await openPage(dashboard.browser);
    await watched.page.goto(await signInLink(dashboard.served.home));
    await watched.page.locator('.shell').waitFor();
    await goTo(watched.page, place);
    return watched;
  }

  async function goTo(page: Page, place: string): Promise<void> {
    await page.goto(`${new URL(page.url()).origin}/#/${place}`);
  }

  const force = (id: string) => dashboard.client.delete(`/v1/processes/${id}?force=true`);

  it('[DB18] the wall draws terminals and logs as they change, and leads to each', async () => {
    const id = await terminal("stty -echo; printf '\\033[41m   \\033[0m first\\n'; cat", 'painted');
    const log = await dashboard.client.start({
      command: 'echo from a pipe; read _',
      stdin: 'pipe',
    });
    const { page, faults } = await open('wall');
    const tile = page.getByRole('link', { name: 'painted' });
    await tile.getByText('first').waitFor();
    await page.getByText('from a pipe', { exact: true }).waitFor();
    // The red cells are drawn where they are on the screen.
    const pixel = await tile.locator('canvas').evaluate((canvas) => {
      interface Painted {
        getContext(kind: '2d'): {
          getImageData(...at: [number, number, number, number]): { data: Uint8ClampedArray };
        };
      }
      const context = (canvas as unknown as Painted).getContext('2d');
      return Array.from(context.getImageData(3, 3, 1, 1).data);
    });
    expect(pixel[0]).toBeGreaterThan(150);
    expect(pixel[1]).toBeLessThan(120);
    await dashboard.client.post(`/v1/terminals/${id}/input`, { text: 'second\n' });
    await tile.getByText('second').waitFor();
    expect(await accessFaults(page)).toEqual([]);
    await tile.click();
    await page.locator('.xterm-rows').getByText('second').waitFor();
    expect(faults).toEqual([]);
    await Promise.all([force(id), force(log.id)]);
  });

  it('[DB28] what needs a person is first in the list and named with its words, in its group and on its page', async () => {
    const id = await terminal("printf 'Publish 1.2.0? \\007'; read _; exec sleep 1000", 'first');
    const calm = await terminal('exec sleep 1000', 'newer');
    const { page, faults } = await open('');
    const row = page.getByRole('row', { name: 'asks first' });
    await row.getByText('Publish 1.2.0?', { exact: true }).waitFor();
    expect(await page.locator('.list-space .row').first().textContent()).toContain('asks');
    await page.keyboard.press('o');
    await page.locator('.row.group').getByText('1 needs you').waitFor();
    expect(await accessFaults(page)).toEqual([]);
    await row.getByRole('link').click();
    await page.getByRole('status').getByText('Publish 1.2.0?').waitFor();
    await dashboard.client.post(`/v1/terminals/${id}/input`, { text: 'yes\n' });
    await page.getByRole('status').getByText('Publish 1.2.0?').waitFor({ state: 'detached' });
    expect(faults).toEqual([]);
    await Promise.all([force(id), force(calm)]);
  });

  it('[DB19] a terminal that asks is in the inbox, the header, the list and first on the wall, until it is answered', async () => {
    const calm = await terminal('exec sleep 1000', 'calm');
    const id = await terminal("printf 'Publish? \\007'; read _; exec sleep 1000", 'publisher');
    const { page, faults } = await open('inbox');
    const item = page.getByRole('listitem').filter({ hasText: 'publisher' });
    await item.getByText('Publish?', { exact: true }).waitFor();
    await item.getByText('asks').waitFor();
    await page.getByRole('link', { name: '1 needs you' }).waitFor();
    expect(await page.title()).toBe('(1) Holdfast');
    expect(await accessFaults(page)).toEqual([]);
    await goTo(page, '');
    await page.getByRole('row', { name: 'asks publisher' }).waitFor();
    await goTo(page, 'wall');
    await page.locator('.tile.needs').waitFor();
    expect(await page.locator('.tile').first().textContent()).toContain('publisher');
    await dashboard.client.post(`/v1/terminals/${id}/input`, { text: 'yes\n' });
    await page.getByRole('link', { name: 'needs you' }).waitFor({ state: 'detached' });
    expect(faults).toEqual([]);
    await Promise.all([force(id), force(calm)]);
  });

  it('[DB20] searches everything that was printed, and a hit leads to its line', async () => {
    const ids = [];
    for (const word of ['amber', 'birch', 'amber again'])
      ids.push(
        await dashboard.client.run({ command: `seq 1 2000; echo "a <b>${word}</b>"; seq 1 2000` }),
      );
    const { page, faults } = await open('search');
    await page.getByText('Everything that was printed').waitFor();
    await page.keyboard.type('<b>amber');
    await page.keyboard.press('Enter');
    await page.getByText('2 hits in').waitFor();
    const hits = page.locator('.hit-line');
    expect(await hits.allTextContents()).toEqual(['a <b>amber again</b>', 'a <b>amber</b>']);
    expect(await accessFaults(page)).toEqual([]);
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.locator('.line.hit', { hasText: 'amber again' }).waitFor();
    expect(faults).toEqual([]);
    for (const id of ids) await force(id);
  });

  it('[DB25] compares two runs: how they ended and the first line that differs', async () => {
    const run = (last: string) => dashboard.client.run({ command: `seq 1 3000; ${last}` });
    const one = await run('echo good; echo end');
    const other = await run('echo bad; echo worse; echo end; exit 3');
    const { page, faults } = await open(`compare/api/${one}/api/${other}`);
    await page.getByText('The first 3,000 lines are the same; line 3,001 differs.').waitFor();
    await page.getByRole('cell', { name: 'exit 3', exact: true }).waitFor();
    expect(await page.locator('.diff .gone').allTextContents()).toEqual(['good']);
    expect(await page.locator('.diff .come').allTextContents()).toEqual(['bad', 'worse']);
    expect(await accessFaults(page)).toEqual([]);
    await goTo(page, `compare/api/${one}/api/${one}`);
    await page.getByText('Both printed the same 3,002 lines.').waitFor();
    expect(faults).toEqual([]);
    for (const id of [one, other]) await force(id);
  });

  it('[DB26] the facts of an ended process have what it cost, and sizes read as on the command line', async () => {
    const { id } = await dashboard.client.start({
      command: 'head -c 67108864 /dev/zero | tr "\\0" x | tail -c 1048576',
      waitMs: 60_000,
    });
    const { page, faults } = await open(`p/api/${id}/facts`);
    const fact = (name: string): Promise<string | null> =>
      page
        .locator('.rows > div', { has: page.getByText(name, { exact: true }) })
        .locator('dd')
        .textContent();
    expect(await fact('output')).toBe('1.0 MB');
    expect(await fact('processor')).toMatch(/^[\d.]+ m?s, [\d.]+ m?s of it in the kernel/);
    expect(await fact('written to disk')).toMatch(/^[\d.]+ [KMG]?B$/);
    await page.getByRole('link', { name: 'Log', exact: true }).click();
    await page.getByRole('status').getByText('of 1.0 MB').waitFor();
    expect(faults).toEqual([]);
    await force(id);
  });

  it('[DB29] the facts of a running process have its living processes, until they are gone', async () => {
    const { id } = await dashboard.client.start({ command: 'sleep 1001 & sleep 1002 & wait' });
    const { page, faults } = await open(`p/api/${id}/facts`);
    const tree = page.getByRole('region', { name: 'Living processes' });
    await tree.getByText('sleep 1001', { exact: true }).waitFor();
    await page.getByRole('heading', { name: 'Living processes: 3' }).waitFor();
    await tree.getByText('0 %').first().waitFor();
    expect(await accessFaults(page)).toEqual([]);
    await dashboard.client.post(`/v1/processes/${id}/signal`, { signal: 'terminate' });
    await tree.waitFor({ state: 'detached' });
    expect(faults).toEqual([]);
    await force(id);
  });

  it('[DB31] the page Host lists tokens and revokes them; a page of one owner sees none', async () => {
    const { token, info } = dashboard.served.tokens.create('chat:seven');
    const { page, faults } = await open('host');
    const row = page.getByRole('row', { name: info.id });
    await row.getByText('chat:seven').waitFor();
    const scoped = { authorization: `Bearer ${token}` };
    expect((await dashboard.client.with(scoped).get('/v1/tokens')).status).toBe(403);
    await row.getByRole('button').click();
    await row.waitFor({ state: 'detached' });
    expect((await dashboard.client.with(scoped).get('/v1/processes')).status).toBe(401);
    expect((await dashboard.client.delete(`/v1/tokens/${info.id}`)).status).toBe(404);
    expect(faults).toEqual([]);
  });

  it('[DB30] on a phone a terminal is answered with a text field and keys, and no page is wider than the screen', async () => {
    const id = await terminal(
      'printf "Name? \\007"; read name; echo "hello $name"; exec cat -v',
      'asker',
    );
    const { page, faults } = await openPage(dashboard.browser, {
      viewport: { width: 390, height: 844 },
      hasTouch: true,
      isMobile: true,
    });
    await page.goto(await signInLink(dashboard.served.home, id));
    await page.getByRole('button', { name: 'Take the keyboard' }).tap();
    await page.getByRole('textbox', { name: 'Text to type' }).fill('Zoë 世界');
    await page.getByRole('button', { name: 'Send' }).tap();
    await page.locator('.xterm-rows').getByText('hello Zoë 世界').waitFor();
    expect(await accessFaults(page)).toEqual([]);
    for (const key of ['Up', 'Esc', 'Enter'])
      await page.getByRole('button', { name: key, exact: true }).tap();
    await page.locator('.xterm-rows').getByText('^[[A^[').first().waitFor();
    await page.getByRole('button', { name: 'Give back' }).tap();
    await page.getByText('Watching').waitFor();
    for (const place of ['', 'inbox', 'wall', 'search', 'host', `p/api/${id}/facts`]) {
      await goTo(page, place);
      await page.locator('main').waitFor();
      const [wide, screen] = await page.evaluate(() => {
        interface Root {
          readonly document: { readonly documentElement: { readonly scrollWidth: number } };
          readonly innerWidth: number;
        }
        const { document, innerWidth } = globalThis as unknown as Root;
        return [document.documentElement.scrollWidth, innerWidth];
      });
      expect([place, wide]).toEqual([place, screen]);
    }
    expect(faults).toEqual([]);
    await force(id);
  });

  it('[DB22] a shared link shows one process live, without a way to change it', async () => {
    const id = await terminal("stty -echo; printf 'shared screen\\n'; cat", 'shown');
    const hidden = await dashboard.client.run({ command: 'echo hidden' });
    const owner = await open(`p/api/${id}`);
    await owner.page.locator('.xterm-rows').getByText('shared screen').waitFor();
    await owner.page.keyboard.press('S');
    await owner.page.getByRole('button', { name: 'For 1 hour' }).click();
    const link = await owner.page.locator('.snippet code').textContent();
    expect(await accessFaults(owner.page)).toEqual([]);
    const { page, faults } = await openPage(dashboard.browser);
    await page.goto(link ?? '');
    await page.locator('.xterm-rows').getByText('shared screen').waitFor();
    expect(page.url()).not.toContain('hfp_');
    await dashboard.client.post(`/v1/terminals/${id}/input`, { text: 'typed by its owner\n' });
    await page.locator('.xterm-rows').getByText('typed by its owner').waitFor();
    for (const name of ['Stop', 'Share', 'Take the keyboard'])
      expect(await page.getByRole('button', { name }).count()).toBe(0);
    await page.keyboard.press('t');
    await goTo(page, `p/api/${hidden}`);
    await page.getByText('There is no such process').waitFor();
    expect([...faults, ...owner.faults]).toEqual([]);
    await Promise.all([force(id), force(hidden)]);
  });

  it('[DB23] the list is a tree by owner and chat on request, with what each group does; the palette leads anywhere', async () => {
    const ids = [];
    for (const [chat, command] of [
      ['one', 'exit 3'],
      ['one', 'true'],
      ['two', 'true'],
    ] as const)
      ids.push(await dashboard.client.run({ command, name: `of ${chat}`, labels: { chat } }));
    const { page, faults } = await open('');
    await page.getByRole('row', { name: 'of two' }).waitFor();
    await page.keyboard.press('o');
    const group = page.getByRole('row', { name: 'api / chat one' });
    await group.getByText('1 failed').waitFor();
    expect(page.url()).toContain('group=owner');
    expect(await accessFaults(page)).toEqual([]);
    await group.getByRole('button').click();
    await page.getByRole('row', { name: 'of one' }).first().waitFor({ state: 'detached' });
    await page.getByRole('row', { name: 'of two' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.locator('dialog input:focus').waitFor();
    await page.keyboard.type('of two');
    await page.getByRole('option', { name: 'of two' }).waitFor();
    expect(await accessFaults(page)).toEqual([]);
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'Facts' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.locator('dialog input:focus').waitFor();
    await page.keyboard.type('>wall');
    await page.keyboard.press('Enter');
    // Nothing runs, so it is empty.
    await page.getByRole('region', { name: 'Tiles' }).waitFor({ state: 'attached' });
    expect(faults).toEqual([]);
    for (const id of ids) await force(id);
  });
});
