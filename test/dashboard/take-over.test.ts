// A person takes over a terminal that an agent drives over MCP: both are told, before, meanwhile and afterwards.
import { describe, expect, it } from 'vitest';
import { hasBrowser, openPage, signInLink, useDashboard } from '../support/browser.ts';
import { overHttp } from '../support/mcp-clients.ts';

describe.skipIf(!hasBrowser)('a person and an agent at one terminal', () => {
  const dashboard = useDashboard();

  it('[DB14] an agent is told in its tool answers who types, and goes on when the keyboard is given back', async () => {
    const { served, client } = dashboard;
    const agent = await overHttp(served.server.url, { authorization: `Bearer ${served.token}` });
    const call = async (name: string, input: Record<string, unknown>): Promise<string> => {
      const answer = await agent.client.callTool({ name, arguments: input });
      return JSON.stringify(answer.structuredContent ?? answer.content);
    };
    const opened = await call('terminal_open', { cols: 80, rows: 20 });
    const { terminal_id: id } = JSON.parse(opened) as { terminal_id: string };
    const run = (command: string) => call('terminal_run', { terminal_id: id, command });
    expect(await run('echo by the ag""ent')).toContain('by the agent');
    const { page, faults } = await openPage(dashboard.browser);
    await page.goto(await signInLink(served.home, id));
    await page.locator('.xterm-rows').getByText('by the agent').first().waitFor();
    await page.keyboard.press('t');
    await page.getByText('You type.').waitFor();
    const refused = await run('echo must not be typed');
    expect(refused).toContain('held by a person in the dashboard');
    expect(refused).toContain('Nothing was typed');
    const keys = await call('terminal_keys', {
      terminal_id: id,
      text: 'nor this',
      keys: ['Enter'],
    });
    expect(keys).toContain('held by a person in the dashboard');
    await page.keyboard.type('echo by ha""nd\n');
    await page.locator('.xterm-rows').getByText('by hand').first().waitFor();
    expect(await call('terminal_read', { terminal_id: id })).toContain('by hand');
    await page.keyboard.press('Control+]');
    await page.getByText('Watching').waitFor();
    expect(await run('echo aft""erwards')).toContain('afterwards');
    await page.locator('.xterm-rows').getByText('afterwards').first().waitFor();
    const { json } = await client.get(`/v1/processes/${id}/timeline`);
    const marks = (json as { marks: { kind: string; label: string }[] }).marks;
    expect(
      marks.filter(({ kind }) => kind === 'keyboard').map(({ label }) => label.split(' ')[0]),
    ).toEqual(['taken', 'given']);
    const { text } = (await client.get(`/v1/processes/${id}/text`)).json as { text: string };
    expect(text).not.toMatch(/must not|nor this/);
    expect(faults).toEqual([]);
    await agent.client.close();
    await client.delete(`/v1/processes/${id}?force=true`);
  });
});
