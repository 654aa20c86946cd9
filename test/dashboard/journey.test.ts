// The core journey of a person through the dashboard, in a real browser.
import { describe, expect, it } from 'vitest';
import {
  accessFaults,
  hasBrowser,
  openPage,
  signInLink,
  useDashboard,
} from '../support/browser.ts';

describe.skipIf(!hasBrowser)('a person and the dashboard', () => {
  const dashboard = useDashboard();

  it('[DB3] signs in by the printed link, which leaves the address at once and works for nobody else', async () => {
    const link = await signInLink(dashboard.served.home);
    const { page, faults } = await openPage(dashboard.browser);
    const sent: string[] = [];
    page.on('request', (request) =>
      sent.push(`${request.url()} ${JSON.stringify(request.headers())}`),
    );
    await page.goto(link);
    await page.getByRole('heading', { name: 'Processes' }).waitFor();
    const code = link.slice(link.indexOf('=') + 1);
    expect(page.url()).not.toContain(code);
    expect(sent.filter((each) => each.includes(code))).toEqual([]);
    expect(await page.context().cookies()).toEqual([]);
    const other = await openPage(dashboard.browser);
    await other.page.goto(link);
    await other.page.getByText('This sign-in link was used already').waitFor();
    expect([...faults, ...other.faults]).toEqual([]);
  });

  it('[DB11] sees a process appear, reads its log, stays where it scrolled, searches, and stops it with proof', async () => {
    const { client } = dashboard;
    const { page, faults } = await openPage(dashboard.browser);
    await page.goto(await signInLink(dashboard.served.home));
    await page.getByText('Nothing has been started yet').waitFor();
    const command = 'seq 1 5000; while read line; do echo "said $line"; done';
    const { id } = await client.start({ command, stdin: 'pipe', name: 'counter' });
    await page.getByRole('link', { name: 'counter' }).waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    const log = page.getByRole('log');
    await log.getByText('5000', { exact: true }).waitFor();
    const say = (text: string) => client.post(`/v1/processes/${id}/stdin`, { text: `${text}\n` });
    await say('hello');
    await log.getByText('said hello').waitFor();
    await log.evaluate((element) => {
      element.scrollTop = 4000;
    });
    await page.getByText('stays here').waitFor();
    const before = await log.evaluate((element) => element.scrollTop);
    for (let count = 0; count < 20; count += 1) await say(`more ${count}`);
    await page.keyboard.press('/');
    await page.keyboard.type('more 19');
    expect(await log.evaluate((element) => element.scrollTop)).toBe(before);
    await page.keyboard.press('Enter');
    await page.getByText('1 of 1', { exact: true }).waitFor();
    await log.locator('.hit', { hasText: 'said more 19' }).waitFor();
    await page.keyboard.press('x');
    await page.getByRole('dialog').waitFor();
    // Escape closes the dialog, and does not leave the page as well; no other key reaches what is below.
    await page.keyboard.press('f');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await log.locator('.hit').waitFor();
    await page.keyboard.press('x');
    await page.getByRole('dialog').getByRole('button', { name: 'Stop', exact: true }).click();
    await page.getByText('Nothing is left').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
    await page.getByText('SIGTERM by dashboard').waitFor();
    expect(faults).toEqual([]);
    await client.delete(`/v1/processes/${id}`);
  });

  it.skipIf(!process.env['DASHBOARD'])(
    '[DB11] reads 60 MB from the first byte to the last, and searches all of it',
    async () => {
      const { client } = dashboard;
      const command = "seq -f 'line %07.0f of a log that is about sixty bytes a line long' 1000000";
      const id = await client.run({ command });
      const { page, faults } = await openPage(dashboard.browser);
      await page.goto(await signInLink(dashboard.served.home, id));
      const log = page.getByRole('log');
      await log.getByText('line 1000000 of').waitFor();
      await page.keyboard.press('Home');
      await log.getByText('line 0000001 of').waitFor();
      await page.keyboard.press('/');
      await page.keyboard.type('line 0654321 of');
      await page.keyboard.press('Enter');
      await log.locator('.hit', { hasText: 'line 0654321 of' }).waitFor();
      await page.getByText('1 of 1', { exact: true }).waitFor();
      await page.keyboard.press('End');
      await log.getByText('line 1000000 of').waitFor();
      expect(faults).toEqual([]);
      await client.delete(`/v1/processes/${id}`);
    },
  );

  it('[DB17] finds failures first in the inbox, and what it has dealt with is gone on the next page too', async () => {
    const { client } = dashboard;
    const failed = await client.run({ command: 'echo broken; exit 7', name: 'failing' });
    const fine = await client.run({ command: 'true', name: 'working' });
    const { page, faults } = await openPage(dashboard.browser);
    await page.goto(await signInLink(dashboard.served.home));
    await page.getByRole('grid').waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('i');
    await page.getByText('broken', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'working' }).waitFor();
    const first = page.getByRole('listitem').first();
    expect(await first.textContent()).toContain('exit 7');
    expect(await accessFaults(page)).toEqual([]);
    await page.keyboard.press('e');
    await page.getByRole('link', { name: 'failing' }).waitFor({ state: 'detached' });
    const next = await openPage(dashboard.browser);
    await next.page.goto(await signInLink(dashboard.served.home));
    await next.page.getByRole('grid').waitFor();
    await next.page.goto(`${new URL(next.page.url()).origin}/#/inbox`);
    await next.page.getByRole('link', { name: 'working' }).waitFor();
    expect(await next.page.getByRole('link', { name: 'failing' }).count()).toBe(0);
    expect([...faults, ...next.faults]).toEqual([]);
    for (const id of [failed, fine]) await client.delete(`/v1/processes/${id}`);
  });

  it('[DB12] shows names, commands and output of others as text: nothing in them runs, hides or turns around', async () => {
    const { client } = dashboard;
    const name = '<img src=x onerror=alert(1)>';
    const command = `printf '<script>alert(2)</script> \\033]0;title\\007\\342\\200\\256gnp.exe \\033[31mred\\033[0m\\n'; : '\u202egpj.exe'`;
    const { id } = await client.start({
      command,
      name,
      labels: { '<b>': '"><svg onload=alert(3)>' },
    });
    const { page, faults } = await openPage(dashboard.browser);
    page.on('dialog', (dialog) => {
      throw new Error(`a dialog was opened: ${dialog.message()}`);
    });
    await page.goto(await signInLink(dashboard.served.home));
    await page.getByText(name).first().waitFor();
    await page.getByText('⟨202e⟩gpj.exe').first().waitFor();
    await page.goto(await signInLink(dashboard.served.home, id));
    await page.getByText('<script>alert(2)</script>', { exact: true }).waitFor();
    await page.getByText('⟨202e⟩gnp.exe', { exact: true }).waitFor();
    await page.getByText('red', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Facts' }).click();
    await page.getByText('"><svg onload=alert(3)>').waitFor();
    expect(await page.title()).toBe('Holdfast');
    expect(await page.locator('#app img, #app svg, #app script').count()).toBe(0);
    expect(faults).toEqual([]);
    await client.delete(`/v1/processes/${id}`);
  });

  it('[DB7] every page passes a checker for accessibility, dark and light, wide and narrow', async () => {
    const { client } = dashboard;
    const { id } = await client.start({ command: "printf '\\033[31mred\\033[0m\\n'; exit 2" });
    // All four with `npm run test:dashboard`.
    const looks = [
      ['dark', 1280],
      ['light', 390],
      ...(process.env['DASHBOARD']
        ? ([
            ['dark', 390],
            ['light', 1280],
          ] as const)
        : []),
    ] as const;
    for (const [colorScheme, width] of looks) {
      const { page, faults } = await openPage(dashboard.browser, {
        colorScheme,
        viewport: { width, height: 800 },
      });
      await page.goto(dashboard.served.server.url);
      await page.getByText('needs a sign-in link').waitFor();
      expect(await accessFaults(page)).toEqual([]);
      await page.goto(await signInLink(dashboard.served.home));
      await page.getByRole('grid').waitFor();
      expect(await accessFaults(page)).toEqual([]);
      const url = new URL(page.url()).origin;
      await page.goto(`${url}/#/host`);
      await page.getByRole('heading', { name: 'Health' }).waitFor();
      expect(await accessFaults(page)).toEqual([]);
      await page.goto(`${url}/#/p/api/${id}`);
      await page.getByText('red', { exact: true }).waitFor();
      expect(await accessFaults(page)).toEqual([]);
      await page.goto(`${url}/#/p/api/${id}/facts`);
      await page.getByText('still stored').waitFor();
      expect(await accessFaults(page)).toEqual([]);
      expect(faults).toEqual([]);
    }
  });
});
