// Terminals in the dashboard, in a real browser: watching changes nothing, the keyboard is taken and given back, and hostile
// output neither freezes the page nor is answered twice.
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
import { bombs } from '../support/bombs.ts';

/** The costliest ones take seconds where others work too. */
const BOMB_MS = 40_000;

describe.skipIf(!hasBrowser)('a terminal in the dashboard', () => {
  const dashboard = useDashboard();

  async function terminal(script: string): Promise<string> {
    const argv = ['/bin/sh', '-c', script];
    const { json } = await dashboard.client.post('/v1/terminals', {
      argv,
      size: { cols: 90, rows: 20 },
    });
    return (json as { process: { id: string } }).process.id;
  }

  async function watch(id: string): Promise<Watched> {
    const watched = await openPage(dashboard.browser);
    await watched.page.goto(await signInLink(dashboard.served.home, id));
    await watched.page.locator('.xterm-screen').waitFor();
    return watched;
  }

  /** Waits until the screen that is drawn has this text. */
  async function shows(page: Page, text: string): Promise<void> {
    await page.locator('.xterm-rows').getByText(text).first().waitFor();
  }

  async function inputs(id: string): Promise<unknown[]> {
    const { json } = await dashboard.client.get(`/v1/processes/${id}/events?maxBytes=1000000`);
    return (json as { events: { kind: string }[] }).events.filter(({ kind }) => kind === 'input');
  }

  it('[DB13] is watched without a change: what is typed stays here, its size is its own, queries are answered once', async () => {
    const id = await terminal(
      'stty -echo; printf \'ready\\033[c\\033[6n\'; read line; echo "got $line"; cat',
    );
    const { page, faults } = await watch(id);
    await shows(page, 'ready');
    await page.locator('.xterm-screen').click();
    await page.keyboard.type('zzz');
    await page.getByText('Watching').waitFor();
    expect(await accessFaults(page)).toEqual([]);
    const answers = await inputs(id);
    await dashboard.client.post(`/v1/terminals/${id}/input`, { text: 'hello\n' });
    await shows(page, 'got');
    expect(await inputs(id)).toHaveLength(answers.length + 1);
    const { json } = await dashboard.client.get(`/v1/terminals/${id}`);
    expect(json).toMatchObject({ size: { cols: 90, rows: 20 } });
    expect(faults).toEqual([]);
  });

  it('[DB14] is taken over by a key: agents are refused and told who types, until Ctrl+] gives it back', async () => {
    const id = await terminal('while read line; do echo "got $line"; done');
    const { page, faults } = await watch(id);
    await page.keyboard.press('t');
    await page.getByText('You type.').waitFor();
    await page.keyboard.type('by hand\n');
    await shows(page, 'got by hand');
    const refused = await dashboard.client.post(`/v1/terminals/${id}/input`, {
      text: 'by an agent\n',
    });
    expect(refused.json).toMatchObject({
      error: {
        code: 'keyboard_held',
        message: expect.stringContaining('a person in the dashboard') as string,
      },
    });
    const other = await watch(id);
    await other.page.keyboard.press('t');
    await other.page.getByText('Another person has the keyboard').waitFor();
    await other.page.getByRole('button', { name: 'Leave it' }).click();
    await page.keyboard.press('Control+]');
    await page.getByText('Watching').waitFor();
    const taken = await dashboard.client.post(`/v1/terminals/${id}/input`, {
      text: 'by an agent\n',
    });
    expect(taken.status).toBe(200);
    await shows(page, 'got by an agent');
    const { json } = await dashboard.client.get(`/v1/processes/${id}/events?maxBytes=1000000`);
    const notes = (json as { events: { kind: string; body: unknown }[] }).events.filter(
      ({ kind }) => kind === 'note',
    );
    expect(notes.map(({ body }) => body)).toMatchObject([
      { note: 'keyboard', action: 'taken' },
      { note: 'keyboard', action: 'given' },
    ]);
    expect([...faults, ...other.faults]).toEqual([]);
  });

  it('[DB21] shows any moment while the program goes on, by its runs and by the time line, and returns to now', async () => {
    const argv = ['/bin/bash', '--norc', '--noprofile'];
    const body = { argv, env: { PS1: '$ ', HOME: '/' }, size: { cols: 60, rows: 12 } };
    const { json } = await dashboard.client.post('/v1/terminals', body);
    const { id } = (json as { process: { id: string } }).process;
    const run = (command: string) => dashboard.client.post(`/v1/terminals/${id}/run`, { command });
    await run('clear; echo "on""e"');
    await run('clear; echo "tw""o"; (exit 4)');
    const { page, faults } = await watch(id);
    await shows(page, 'two');
    const runs = page.getByRole('complementary', { name: 'Runs' });
    await runs.getByText('exit 4', { exact: true }).waitFor({ state: 'attached' });
    await runs.getByRole('button').last().click();
    await shows(page, 'one');
    await page.getByText('ago · event').waitFor();
    await run('clear; echo "thr""ee"');
    expect(await page.locator('.xterm-rows').textContent()).toContain('one');
    expect(await accessFaults(page)).toEqual([]);
    await page.keyboard.press('L');
    await shows(page, 'three');
    await page.keyboard.press('0');
    await page.getByText('ago · event').waitFor();
    await page.getByRole('button', { name: 'Live' }).click();
    await shows(page, 'three');
    expect(faults).toEqual([]);
    await dashboard.client.delete(`/v1/processes/${id}?force=true`);
  });

  it('[DB15] hostile output neither freezes the page nor makes it answer', async () => {
    const few = ['S', 'L', 'b', 'T', 'M', '@', 'P', 'X'].map((final) => `\\033[99999999${final}`);
    const queries =
      '\\033[c\\033[>c\\033[6n\\033[?6n\\033]11;?\\007\\033]52;c;?\\007\\033[18t'.repeat(50);
    const id = await terminal(
      `stty -echo; printf 'x${few.join('y')}'; printf '${queries}'; printf '\\033c'; echo survived; cat`,
    );
    const { page, faults } = await watch(id);
    await shows(page, 'survived');
    const before = await inputs(id);
    await page.reload();
    await shows(page, 'survived');
    await page.keyboard.press('t');
    await page.getByText('You type.').waitFor();
    expect(await inputs(id)).toHaveLength(before.length);
    expect(faults).toEqual([]);
  });

  it(
    '[DB15] every bomb of the emulator is survived: the page answers to the next key, and says nothing for itself',
    async () => {
      const file = new URL('../support/bombs.json', import.meta.url).pathname;
      // After each: the end of any string, and a reset. Answers to its own queries arrive between the commands.
      const program = `
      const bombs = Object.values(JSON.parse(require('node:fs').readFileSync('${file}', 'utf8')));
      const end = String.fromCharCode(24, 27, 92, 27, 99);
      process.stdin.setRawMode(true).setEncoding('utf8');
      console.log('ready');
      let line = '';
      process.stdin.on('data', (text) => {
        line = (line + text).slice(-4096);
        const command = /bomb (\\d+)\\./.exec(line);
        if (!command) return;
        const at = Number(command[1]);
        line = '';
        const [first, repeated, times, last] = bombs[at];
        const middle = Array.from({ length: times }, (_, n) => repeated.replace('{n}', n));
        process.stdout.write(first + middle.join('') + last + end + 'survived ' + at);
      });`;
      const { json } = await dashboard.client.post('/v1/terminals', {
        argv: [process.execPath, '-e', program],
      });
      const { id } = (json as { process: { id: string } }).process;
      const { page, faults } = await openPage(dashboard.browser);
      const typed: string[] = [];
      page.on('websocket', (socket) =>
        socket.on('framesent', ({ payload }) => {
          if (String(payload).includes('"type":"type"')) typed.push(String(payload));
        }),
      );
      await page.goto(await signInLink(dashboard.served.home, id));
      await shows(page, 'ready');
      for (let at = 0; at < Object.keys(bombs).length; at += 1) {
        await dashboard.client.post(`/v1/terminals/${id}/input`, { text: `bomb ${at}.` });
        await shows(page, `survived ${at}`);
        await page.keyboard.press('r');
        await page.getByRole('dialog').getByText(`survived ${at}`).waitFor();
        await page.keyboard.press('Escape');
        await page.getByRole('dialog').waitFor({ state: 'detached' });
      }
      expect(typed).toEqual([]);
      // The number is of terminals that wait for someone, of the tests before.
      expect(await page.title()).toMatch(/^(\(\d+\) )?Holdfast$/);
      expect(faults).toEqual([]);
      await dashboard.client.delete(`/v1/processes/${id}?force=true`);
    },
    Object.keys(bombs).length * BOMB_MS,
  );
});
