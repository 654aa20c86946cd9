// A real browser for tests of the dashboard: Debian's chromium, driven over its debugging protocol. Whatever the page must never
// do is watched in every test: break its security policy, throw, or ask another origin.

import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import { serve, type Served } from './coder-client.ts';
import { onCleanup } from './hosts.ts';
import { NativeClient } from './native-client.ts';
import { runHere } from './command-line.ts';

const CHROMIUM = '/usr/bin/chromium';
/** Without it these tests are left out, and `npm test` says so before it begins. */
export const hasBrowser = existsSync(CHROMIUM);

const ARGUMENTS = [
  '--no-sandbox',
  '--disable-dev-shm-usage',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Of the browser's own limits, which are short for a busy machine. */
const PATIENCE_MS = 100_000;

/** With a profile of its own that is empty and goes with it. */
export function startBrowser(...more: string[]): Promise<Browser> {
  return chromium.launch({
    executablePath: CHROMIUM,
    headless: true,
    timeout: PATIENCE_MS,
    args: [...ARGUMENTS, ...more],
  });
}

export interface Dashboard {
  browser: Browser;
  served: Served;
  client: NativeClient;
}

/** One browser and one server for the tests of a suite. */
export function useDashboard(): Dashboard {
  const dashboard = {} as Dashboard;
  beforeAll(async () => {
    const [browser, served] = await Promise.all([startBrowser(), serve()]);
    Object.assign(dashboard, { browser, served, client: NativeClient.of(served) });
  });
  afterAll(async () => {
    await dashboard.browser.close();
    await dashboard.served.stop();
  });
  return dashboard;
}

export interface Watched {
  readonly page: Page;
  /** Violations of the policy, exceptions, errors in the console, requests elsewhere. */
  readonly faults: readonly string[];
}

/** A page as a new person would open it. Gone after the test. */
export async function openPage(
  browser: Browser,
  options: BrowserContextOptions = {},
): Promise<Watched> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    colorScheme: 'dark',
    ...options,
  });
  context.setDefaultTimeout(PATIENCE_MS);
  onCleanup(() => context.close());
  const page = await context.newPage();
  const faults: string[] = [];
  // A server that is down or refuses is no fault of the page.
  page.on('console', (message) => {
    if (
      message.type() === 'error' &&
      !/^Failed to load resource|WebSocket connection/.test(message.text())
    )
      faults.push(message.text());
  });
  page.on('pageerror', (error) => faults.push(String(error.stack)));
  page.on('request', (request) => {
    const url = new URL(request.url());
    const own =
      url.hostname === '127.0.0.1' || url.protocol === 'data:' || url.protocol === 'blob:';
    if (!own) faults.push(`asked ${url.origin}`);
  });
  return { page, faults };
}

/** The link that the command line prints. */
export async function signInLink(home: string, ...more: string[]): Promise<string> {
  const { stdout } = await runHere(['dashboard', '--print', '--home', home, ...more]);
  return stdout.trim();
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What a checker for accessibility finds, each with the first place. */
export async function accessFaults(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  return page.evaluate(async () => {
    interface Found {
      id: string;
      nodes: { html: string; failureSummary: string }[];
    }
    interface Checker {
      run(options: object): Promise<{ violations: Found[] }>;
    }
    const { axe: checker } = globalThis as unknown as { axe: Checker };
    // Reports on what passes cost a third of the time.
    const { violations } = await checker.run({ resultTypes: ['violations'], preload: false });
    return violations.map(
      ({ id, nodes: [node] }) => `${id}: ${node?.html} ${node?.failureSummary}`,
    );
  });
}
