// What a person does from the page beside watching and typing: ends many, starts again, pins, compares, saves, plays.
import { readFileSync } from 'node:fs';
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

describe.skipIf(!hasBrowser)('what a person does in the dashboard', () => {
  const dashboard = useDashboard();

  async function open(...more: string[]): Promise<Watched> {
    const watched = await openPage(dashboard.browser);
    await watched.page.goto(await signInLink(dashboard.served.home, ...more));
    await watched.page.locator('.shell').waitFor();
    return watched;
  }

  async function choose(page: Page, name: string): Promise<void> {
    await page.getByRole('link', { name }).waitFor();
    await page.getByRole('row', { name }).click({ position: { x: 5, y: 5 } });
  }

  async function waitForRow(page: Page, name: string): Promise<void> {
    await page.getByRole('link', { name }).waitFor();
  }

  const force = (id: string) => dashboard.client.delete(`/v1/processes/${id}?force=true`);

  it('[DB32] ends a whole group, and selected processes, only when their number is typed', async () => {
    const { client } = dashboard;
    const chat = { chat: '7' };
    const ids: string[] = [];
    for (const name of ['one', 'two', 'three'])
      ids.push((await client.start({ command: 'read _', stdin: 'pipe', name, labels: chat })).id);
    const { id: other } = await client.start({ command: 'read _', stdin: 'pipe', name: 'apart' });
    const { page, faults } = await open();
    await waitForRow(page, 'three');
    await page.keyboard.press('o');
    const group = page.getByRole('row', { name: 'chat 7' });
    await group.click({ position: { x: 5, y: 5 } });
    await page.keyboard.press('x');
    const dialog = page.getByRole('dialog', { name: 'Stop 3 processes?' });
    const stopAll = dialog.getByRole('button', { name: 'Stop all' });
    expect(await stopAll.isDisabled()).toBe(true);
    await page.keyboard.type('4');
    expect(await stopAll.isDisabled()).toBe(true);
    expect(await accessFaults(page)).toEqual([]);
    await page.keyboard.press('Backspace');
    await page.keyboard.type('3');
    await stopAll.click();
    await page.getByText('3 of 3 stopped').waitFor();
    await page.getByText('Nothing is left').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
    for (const id of ids)
      expect((await client.get(`/v1/processes/${id}`)).json).toMatchObject({
        outcome: { signal: 'SIGTERM', by: 'dashboard' },
      });
    expect((await client.get(`/v1/processes/${other}`)).json).toMatchObject({ state: 'running' });
    expect(faults).toEqual([]);
    for (const id of [...ids, other]) await force(id);
  });

  it('[DB33] starts an ended process again, in its directory with its arguments, and says what is not kept', async () => {
    const { client } = dashboard;
    const id = await client.run({
      command: 'pwd; echo "<$SECRET>"',
      cwd: '/usr',
      env: { SECRET: 'value' },
      labels: { chat: '8' },
    });
    const { page, faults } = await open(id);
    await page.getByText('<value>').waitFor();
    await page.keyboard.press('R');
    await page.getByText('variables that were set for this start are never stored').waitFor();
    expect(await accessFaults(page)).toEqual([]);
    await page.getByRole('dialog').getByRole('button', { name: 'Run again' }).click();
    await page.getByText('<>', { exact: true }).waitFor();
    await page.getByText('/usr', { exact: true }).waitFor();
    const { json } = await client.get('/v1/processes');
    const { processes } = json as { processes: { id: string; labels?: { chat: string } }[] };
    const both = processes.filter(({ labels }) => labels?.chat === '8');
    expect(both).toHaveLength(2);
    expect(both).toMatchObject([{ owner: 'api', cwd: '/usr' }, { id }]);
    expect(faults).toEqual([]);
    for (const process of both) await force(process.id);
  });

  it('[DB34] pins by a key, opens by a number, takes a terminal from the list, and compares two that are selected', async () => {
    const { client } = dashboard;
    const first = await client.run({ command: 'echo same; echo old', name: 'earlier' });
    const second = await client.run({ command: 'echo same; echo new', name: 'later' });
    const argv = ['/bin/sh', '-c', 'while read line; do echo "got $line"; done'];
    const { json } = await client.post('/v1/terminals', { argv, name: 'shell' });
    const { id } = (json as { process: { id: string } }).process;
    const { page, faults } = await open();
    await choose(page, 'earlier');
    await page.keyboard.press('p');
    await page.locator('.pin', { hasText: '1' }).waitFor();
    await page.reload();
    await page.locator('.pin', { hasText: '1' }).waitFor();
    await page.keyboard.press('1');
    await page.getByText('old', { exact: true }).waitFor();
    await page.keyboard.press('Escape');
    for (const name of ['later', 'earlier']) {
      await choose(page, name);
      await page.keyboard.press('v');
    }
    await page.getByText('2 selected').waitFor();
    expect(await accessFaults(page)).toEqual([]);
    await page.keyboard.press('c');
    await page.getByRole('heading', { name: 'Compare two runs' }).waitFor();
    await page.getByText('old', { exact: true }).waitFor();
    await page.keyboard.press('Escape');
    await choose(page, 'shell');
    await page.keyboard.press('t');
    await page.getByText('You type.').waitFor();
    await page.keyboard.type('by hand\n');
    await page.locator('.xterm-rows').getByText('got by hand').first().waitFor();
    await page.keyboard.press('Control+]');
    await page.getByText('Watching').waitFor();
    expect(faults).toEqual([]);
    for (const each of [first, second, id]) await force(each);
  });

  it('[DB35] saves the picture of a moment and a recording, and plays what a terminal showed up to the present', async () => {
    const { client } = dashboard;
    const argv = ['/bin/sh', '-c', 'echo first; read _; clear; echo second; read _'];
    const { json } = await client.post('/v1/terminals', { argv, name: 'show' });
    const { id } = (json as { process: { id: string } }).process;
    const { page, faults } = await open(id);
    const rows = page.locator('.xterm-rows');
    await rows.getByText('first').first().waitFor();
    await client.post(`/v1/terminals/${id}/input`, { text: '\n' });
    await rows.getByText('second').first().waitFor();
    const saved = async (button: string): Promise<Buffer> => {
      const download = page.waitForEvent('download');
      await page.getByRole('dialog').getByRole('button', { name: button }).click();
      return readFileSync(await (await download).path());
    };
    await page.keyboard.press('d');
    expect(await accessFaults(page)).toEqual([]);
    expect((await saved('Picture (PNG)')).subarray(1, 4).toString()).toBe('PNG');
    expect((await saved('Recording (asciicast)')).toString()).toContain('"version"');
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
    await page.getByRole('combobox', { name: 'Speed' }).selectOption('60 ×');
    await page.getByRole('button', { name: 'Play' }).click();
    await page.getByRole('button', { name: 'Pause' }).waitFor();
    await page.getByRole('button', { name: 'Play' }).waitFor();
    await page.getByText('live · event').waitFor();
    await rows.getByText('second').first().waitFor();
    expect(faults).toEqual([]);
    await force(id);
  });
});
