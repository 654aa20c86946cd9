// Pages of other origins and other ports, in the browser in which a person is signed in: they try what a page can try, and
// neither learn nor change anything. Links that are over show nothing.
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { hasBrowser, openPage, signInLink, useDashboard } from '../support/browser.ts';
import { onCleanup } from '../support/hosts.ts';

interface DevServer {
  readonly port: number;
  /** Of every request. */
  readonly headers: IncomingHttpHeaders[];
}

/** What an agent might serve on this machine: an empty page of its own. */
async function openDevServer(): Promise<DevServer> {
  const headers: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    headers.push(request.headers);
    response.setHeader('Content-Type', 'text/html');
    response.end('<!doctype html><title>a dev server</title>');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onCleanup(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, headers };
}

/** Runs in the hostile page. Each attempt answers what it got; "nothing" is what it should get. */
async function tryEverything({ target, id }: { target: string; id: string }) {
  interface Element_ extends Record<string, unknown> {
    append(element: object): void;
    addEventListener(name: string, listen: () => void): void;
    submit(): void;
  }
  const own = globalThis as unknown as {
    readonly document: { readonly body: Element_; createElement(name: string): Element_ };
    readonly navigator: { sendBeacon(url: string, body: string): boolean };
    readonly EventSource: new (url: string) => WebSocket;
    open(url: string): { readonly closed: boolean; readonly document?: { title: string } } | null;
  };
  const { document } = own;
  const got: Record<string, string> = {};
  const attempt = async (name: string, act: () => Promise<string>): Promise<void> => {
    got[name] = await act().catch(() => 'nothing');
  };
  const start = JSON.stringify({ command: 'echo started by another page', name: 'stolen' });
  const read = async (path: string, options: RequestInit): Promise<string> =>
    (await fetch(target + path, options)).type;
  const header = { Authorization: 'Bearer guessed' };
  await attempt('list', () => read('/v1/processes', {}));
  await attempt('list with cookies', () => read('/v1/processes', { credentials: 'include' }));
  await attempt('list with a header', () => read('/v1/processes', { headers: header }));
  await attempt('page', () => read('/', {}));
  await attempt('start', () => read('/v1/processes', { method: 'POST', body: start }));
  await attempt('code', () => read('/v1/sessions/codes', { method: 'POST' }));
  await attempt('stop', () => read(`/v1/processes/${id}?force=true`, { method: 'DELETE' }));
  // These are sent; that nothing came of them is looked up in the server.
  const blind = { method: 'POST', mode: 'no-cors', credentials: 'include' } as const;
  for (const path of ['/v1/processes', '/v1/run', '/v1/sessions/codes', '/mcp', '/v1/prune'])
    await fetch(target + path, { ...blind, body: start }).catch(() => undefined);
  own.navigator.sendBeacon(`${target}/v1/processes`, start);
  for (const path of ['/v1/watch', `/v1/terminals/${id}/attach`, '/codex'])
    await attempt(`WebSocket ${path}`, () => {
      const socket = new WebSocket(target.replace('http', 'ws') + path);
      return new Promise((resolve, reject) => {
        socket.addEventListener('open', () => resolve('open'));
        socket.addEventListener('error', () => reject(new Error('refused')));
      });
    });
  await attempt('events', () => {
    const source = new own.EventSource(`${target}/v1/processes/${id}/follow`);
    return new Promise((resolve, reject) => {
      source.addEventListener('open', () => resolve('open'));
      source.addEventListener('error', () => reject(new Error('refused')));
    });
  });
  const load = (name: string, fields: Record<string, string>): Promise<string> => {
    const element = document.createElement(name);
    Object.assign(element, fields);
    return new Promise((resolve) => {
      element.addEventListener('load', () =>
        resolve(name === 'iframe' && !element['contentDocument'] ? 'nothing' : 'loaded'),
      );
      element.addEventListener('error', () => resolve('nothing'));
      document.body.append(element);
    });
  };
  await attempt('script', () => load('script', { src: `${target}/v1/processes` }));
  await attempt('picture', () => load('img', { src: `${target}/v1/terminals/${id}/screenshot` }));
  await attempt('frame', () => load('iframe', { src: `${target}/` }));
  await attempt('window', async () => {
    const opened = own.open(`${target}/`);
    // It is cut off, or its document may not be read.
    for (;;) {
      if (!opened || opened.closed) break;
      void opened.document?.title;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    return 'nothing';
  });
  const form = document.createElement('form');
  Object.assign(form, { method: 'POST', action: `${target}/v1/processes`, enctype: 'text/plain' });
  const field = document.createElement('input');
  Object.assign(field, { name: start, value: '' });
  form.append(field);
  Object.assign(form, { target: '_blank' });
  document.body.append(form);
  form.submit();
  return got;
}

describe.skipIf(!hasBrowser)('other pages of the same browser', () => {
  const dashboard = useDashboard();

  async function signedIn(): Promise<{ page: Page; faults: readonly string[] }> {
    const watched = await openPage(dashboard.browser);
    await watched.page.goto(await signInLink(dashboard.served.home));
    await watched.page.getByRole('grid').or(watched.page.locator('.nothing')).first().waitFor();
    return watched;
  }

  it('[DB5] a page of another port, and one of another name, learn nothing and change nothing', async () => {
    const { client, served } = dashboard;
    const argv = ['/bin/sh', '-c', 'echo secret; exec cat'];
    const { json } = await client.post('/v1/terminals', { argv });
    const { id } = (json as { process: { id: string } }).process;
    const { page, faults } = await signedIn();
    const dev = await openDevServer();
    const target = `http://127.0.0.1:${served.port}`;
    for (const host of ['127.0.0.1', 'localhost']) {
      const hostile = await page.context().newPage();
      await hostile.goto(`http://${host}:${dev.port}/`);
      const got = await hostile.evaluate(tryEverything, { target, id });
      expect(Object.entries(got).filter(([, what]) => what !== 'nothing')).toEqual([]);
      expect(Object.keys(got).length).toBeGreaterThan(12);
    }
    const { processes } = (await client.get('/v1/processes')).json as {
      processes: { id: string; state: string }[];
    };
    expect(processes.map((each) => [each.id, each.state])).toEqual([[id, 'running']]);
    const { sessions } = (await client.get('/v1/sessions')).json as { sessions: unknown[] };
    expect(sessions).toHaveLength(1);
    await page.getByRole('row', { name: 'sh -c' }).waitFor();
    expect(faults).toEqual([]);
    await client.delete(`/v1/processes/${id}?force=true`);
  });

  it('[DB27] what a person opens gets no cookie, no token and no address of the page; no request has the token in its address', async () => {
    const { client } = dashboard;
    const serve = `const http = require('node:http');
      const server = http.createServer((request, response) => {
        console.log('asked ' + JSON.stringify(request.headers));
        response.end('served');
      });
      server.listen(0, '127.0.0.1');`;
    const { id } = await client.start({ argv: [process.execPath, '-e', serve], name: 'web' });
    const { page, faults } = await signedIn();
    const asked: string[] = [];
    page.context().on('request', (request) => asked.push(request.url()));
    const token = await page.evaluate(() =>
      (
        globalThis as unknown as { sessionStorage: { getItem(key: string): string | null } }
      ).sessionStorage.getItem('holdfast.token'),
    );
    await page.getByRole('link', { name: 'web' }).click();
    const port = page.getByRole('link', { name: '↗' });
    const [opened] = await Promise.all([page.context().waitForEvent('page'), port.click()]);
    await opened.getByText('served').waitFor();
    expect(await opened.evaluate(() => (globalThis as { opener?: unknown }).opener ?? 'none')).toBe(
      'none',
    );
    const text = String((await client.get(`/v1/processes/${id}/text`)).bytes);
    expect(text).toContain('asked');
    // The page itself asks for its icon, with its own address.
    expect(text).not.toMatch(/cookie|hfp_/i);
    expect(text).not.toContain(`:${dashboard.served.port}`);
    expect(token).toMatch(/^hfp_/);
    for (const page_ of ['inbox', 'wall', 'search?q=asked', 'host'])
      await page.goto(`${new URL(page.url()).origin}/#/${page_}`);
    await page.getByRole('heading', { name: 'Health' }).waitFor();
    expect(asked.length).toBeGreaterThan(5);
    expect(asked.filter((url) => url.includes(token ?? '?'))).toEqual([]);
    expect(dashboard.served.reports.filter((line) => line.includes('hfp_'))).toEqual([]);
    expect(await page.context().cookies()).toEqual([]);
    expect(faults).toEqual([]);
    await client.delete(`/v1/processes/${id}?force=true`);
  });

  it('[DB22] a shared link that is over says so, opened then or open already, and shows nothing', async () => {
    const { client, served } = dashboard;
    const { id, owner } = await client.start({ command: 'echo shared; exec sleep 1000' });
    const share = async (forMs: number): Promise<{ link: string; session: string }> => {
      const { json } = await client.post(`/v1/processes/${id}/share`, { forMs });
      const { token, session } = json as { token: string; session: { id: string } };
      return { link: `${served.server.url}/#share=${token}/p/${owner}/${id}`, session: session.id };
    };
    const long = await share(3_600_000);
    const { page, faults } = await openPage(dashboard.browser);
    await page.goto(long.link);
    await page.getByText('shared', { exact: true }).waitFor();
    await client.delete(`/v1/sessions/${long.session}`);
    await page.getByText('This shared link is over').waitFor();
    expect(await page.getByText('shared', { exact: true }).count()).toBe(0);
    const short = await share(1000);
    const late = await openPage(dashboard.browser);
    await late.page.goto(short.link);
    await late.page.getByText('This shared link is over').waitFor();
    for (const link of [long.link, short.link]) {
      const again = await openPage(dashboard.browser);
      await again.page.goto(link);
      await again.page.getByText('This shared link is over').waitFor();
      expect(again.faults).toEqual([]);
    }
    expect([...faults, ...late.faults]).toEqual([]);
    await client.delete(`/v1/processes/${id}?force=true`);
  });
});
