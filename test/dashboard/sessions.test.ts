// The ground of the dashboard without a browser: its files and their policy, sign-in by a one-time code, sessions.
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FakeClock } from '../support/fake-clock.ts';
import { PageSessions } from '../../src/server/dashboard/page-sessions.ts';
import { loadDashboard } from '../../src/server/dashboard/files.ts';
import { serve, type Served } from '../support/coder-client.ts';
import { NativeClient } from '../support/native-client.ts';
import { Place } from '../support/command-line.ts';
import { onCleanup, temporaryFolder } from '../support/hosts.ts';

let served: Served;
let client: NativeClient;

beforeAll(async () => {
  served = await serve();
  client = NativeClient.of(served);
});

afterAll(() => served.stop());

/** Without any token, as a page that is not signed in. */
function nobody(headers: Record<string, string> = {}): NativeClient {
  return new NativeClient({ host: '127.0.0.1', port: served.port }, headers);
}

async function newCode(by = client): Promise<string> {
  const { status, json } = await by.post('/v1/sessions/codes');
  expect(status).toBe(200);
  return (json as { code: string }).code;
}

async function signedIn(
  code: string,
): Promise<{ client: NativeClient; id: string; token: string }> {
  const { status, json } = await nobody({ 'user-agent': 'Firefox/128' }).post('/v1/sessions', {
    code,
  });
  expect(status).toBe(200);
  const { token, session } = json as { token: string; session: { id: string } };
  return { client: nobody({ authorization: `Bearer ${token}` }), id: session.id, token };
}

describe('the files of the dashboard', () => {
  it('[DB1] the page runs only its own scripts, loads nothing from elsewhere and is never framed', async () => {
    const [first, second] = [await nobody().get('/'), await nobody().get('/')];
    expect(first.status).toBe(200);
    const policy = String(first.headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'; script-src 'self';");
    expect(policy).toContain("frame-ancestors 'none'; require-trusted-types-for 'script'");
    expect(policy).not.toMatch(/unsafe|\*|https?:/);
    expect(first.headers).toMatchObject({
      'x-frame-options': 'DENY',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'cache-control': 'no-store',
    });
    expect(first.headers).not.toHaveProperty('set-cookie');
    const [, nonce = ''] = /'nonce-([\w-]{22})'/.exec(policy) ?? [];
    expect(first.bytes.toString()).toContain(`nonce="${nonce}"`);
    expect(String(second.headers['content-security-policy'])).not.toContain(nonce);
  });

  it('[DB1] every file that the page names is there, packed or not, and stays the same for ever', async () => {
    const { bytes } = await nobody().get('/');
    const names = Array.from(bytes.toString().matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g));
    expect(names.length).toBeGreaterThan(1);
    for (const [, path = ''] of names) {
      const plain = await nobody().get(path);
      expect(plain.status).toBe(200);
      expect(plain.headers['cache-control']).toContain('immutable');
      const packed = await nobody({ 'accept-encoding': 'gzip, br' }).get(path);
      expect(packed.headers['content-encoding']).toBe('gzip');
      expect(packed.bytes.length).toBeLessThan(plain.bytes.length);
    }
    expect((await nobody().get('/assets/none.js')).status).toBe(404);
    expect((await nobody().get('/assets/..%2findex.html')).status).toBe(404);
  });

  it('[DB2] the page brings at most 40 KB of script before it is drawn, and 140 KB more with a terminal', async () => {
    const { page, assets } = await loadDashboard();
    const scripts = [...assets].filter(([name]) => name.endsWith('.js'));
    const size = (of: typeof scripts): number =>
      of.reduce((sum, [, { gzip }]) => sum + gzip.length, 0);
    const first = scripts.filter(([name]) => page.includes(name));
    expect(first.length).toBeGreaterThan(0);
    expect(size(first)).toBeLessThan(40_000);
    expect(size(scripts) - size(first)).toBeLessThan(140_000);
    // Nothing of Node has come along: in a browser it is missing.
    for (const [name, { gzip }] of scripts)
      expect([name, /["'`]node:|browser-external/.exec(gunzipSync(gzip).toString())]).toEqual([
        name,
        null,
      ]);
  });
});

describe('sign-in to the dashboard', () => {
  it('[DB3] a code works once, and only as long as it is young', async () => {
    const code = await newCode();
    const page = await signedIn(code);
    expect((await page.client.get('/v1/processes')).status).toBe(200);
    for (const wrong of [code, 'x', ''])
      expect((await nobody().post('/v1/sessions', { code: wrong })).status).toBe(401);
    const clock = new FakeClock();
    const pages = new PageSessions(temporaryFolder(), clock);
    const late = pages.createCode('*');
    clock.advance(120_000);
    expect(() => pages.open(late.code, '')).toThrow(/expired/);
  });

  it('[DB3] a code carries the rights of whoever asked for it, and a page cannot widen them', async () => {
    const chat = NativeClient.of({ ...served, token: served.tokens.create('chat:a').token });
    const page = await signedIn(await newCode(chat));
    const { json } = await page.client.get('/v1/sessions');
    expect(json).toMatchObject({ sessions: [{ id: page.id, owner: 'chat:a', current: true }] });
    const all = page.client.with({ 'holdfast-owner': 'cli' });
    expect((await all.get('/v1/processes')).status).toBe(403);
    expect((await page.client.get('/metrics')).status).toBe(403);
    expect((await nobody().post('/v1/sessions/codes')).status).toBe(401);
  });

  it('[DB4] sessions are listed without their tokens, and a revoked one is refused at once', async () => {
    const [one, other] = [await signedIn(await newCode()), await signedIn(await newCode())];
    const listed = JSON.stringify((await one.client.get('/v1/sessions')).json);
    expect(listed).toContain(other.id);
    expect(listed).toContain('Firefox/128');
    expect(listed).not.toContain(other.token);
    expect((await one.client.delete(`/v1/sessions/${other.id}`)).status).toBe(200);
    expect((await other.client.get('/v1/processes')).status).toBe(401);
    expect((await one.client.delete(`/v1/sessions/${other.id}`)).status).toBe(404);
  });

  it('[DB4] a session outlives its server, ends when it is not used, and after a week in any case', () => {
    const [folder, clock] = [temporaryFolder(), new FakeClock()];
    const pages = new PageSessions(folder, clock);
    const { token } = pages.open(pages.createCode('*').code, '');
    const hour = 3_600_000;
    const next = new PageSessions(folder, clock);
    for (let hours = 0; hours < 7 * 24; hours += 2) {
      expect(next.bearer(token)).toMatchObject({ owner: '*' });
      clock.advance(2 * hour);
    }
    expect(next.bearer(token)).toBeUndefined();
    const idle = pages.open(pages.createCode('*').code, '').token;
    clock.advance(13 * hour);
    expect(pages.bearer(idle)).toBeUndefined();
  });

  it('[DB4] the file of sessions is private and holds no token', async () => {
    const { token } = await signedIn(await newCode());
    const file = join(served.home, 'pages.json');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, 'utf8')).not.toContain(token);
  });

  it('[DB5] a page of our own origin may ask, with its port; no other page of this machine', async () => {
    const ask = async (origin: string): Promise<number> => {
      return (await nobody({ origin }).post('/v1/sessions', { code: 'x' })).status;
    };
    for (const name of ['127.0.0.1', 'localhost', '[::1]'])
      expect(await ask(`http://${name}:${served.port}`)).toBe(401);
    for (const origin of ['http://127.0.0.1:1', 'http://127.0.0.1', 'http://evil.example', 'null'])
      expect(await ask(origin)).toBe(403);
  });
});

describe('the command line and the dashboard', () => {
  it('[DB6] prints a link whose secret no server or log is sent, and starts the server if none runs', async () => {
    const place = new Place();
    onCleanup(() => place.close());
    const { stdout, code } = await place.run('dashboard', '--print');
    expect(code).toBe(0);
    const link = new URL(stdout.trim());
    expect([link.pathname, link.search]).toEqual(['/', '']);
    expect(link.hash).toMatch(/^#code=[\w-]{22}$/);
    const id = await place.background('--name', 'web', 'sleep 1000');
    const leading = await place.run('dashboard', 'web', '--print');
    expect(leading.stdout.trim()).toMatch(new RegExp(`#code=[\\w-]{22}/p/cli/${id}$`));
    expect(await place.json('dashboard')).toMatchObject({ result: { opened: false } });
  });
});
