// The dashboard in a real browser, for figures: signed in, watched for what it must never do, with clocks inside the page.

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { MAIN } from './server.mjs';

const CHROMIUM = '/usr/bin/chromium';
const ARGUMENTS = [
  '--no-sandbox',
  '--disable-dev-shm-usage',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--enable-precise-memory-info',
  '--js-flags=--expose-gc',
];

/** As on a display that never makes a drawn frame wait. */
export const UNLIMITED_FRAMES = ['--disable-frame-rate-limit', '--disable-gpu-vsync'];

export async function openBrowser(...more) {
  if (!existsSync(CHROMIUM)) throw new Error(`The dashboard is measured in ${CHROMIUM}.`);
  const args = [...ARGUMENTS, ...more];
  return chromium.launch({ executablePath: CHROMIUM, args, handleSIGTERM: false });
}

/** A page of its own that is signed in. `faults`: violations of its policy, exceptions, requests elsewhere. */
export async function openPage(browser, home) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  const faults = [];
  const typed = [];
  page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('request', (request) => {
    const { hostname, protocol } = new URL(request.url());
    if (hostname !== '127.0.0.1' && !/^(?:data|blob):$/.test(protocol)) faults.push(request.url());
  });
  page.on('websocket', (socket) =>
    socket.on('framesent', ({ payload }) => {
      if (typeof payload === 'string' && payload.includes('"type":"type"')) typed.push(payload);
    }),
  );
  await page.addInitScript(watchPage);
  await page.goto(linkTo(home));
  await page.waitForSelector('.shell');
  return { page, faults, typed, origin: new URL(page.url()).origin, close: () => context.close() };
}

export function linkTo(home) {
  const args = [MAIN, 'dashboard', '--print', '--home', home];
  return execFileSync(process.execPath, args, { encoding: 'utf8' }).trim();
}

/** Runs in the page before its own scripts. */
function watchPage() {
  globalThis.longTasks = [];
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) globalThis.longTasks.push(duration);
  }).observe({ entryTypes: ['longtask'] });
  /** Milliseconds from an act until the document is as wanted. */
  globalThis.timeUntil = (act, isThere) =>
    new Promise((resolve) => {
      const began = performance.now();
      const done = () => {
        if (!isThere()) return false;
        observer.disconnect();
        resolve(performance.now() - began);
        return true;
      };
      const observer = new MutationObserver(done);
      observer.observe(document, {
        subtree: true,
        childList: true,
        characterData: true,
        attributes: true,
      });
      act();
      done();
    });
}

/** The longest task of the page since the last question; below 50 ms a browser reports none. */
export function longestTask(page) {
  return page.evaluate(async () => {
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    return Math.max(0, ...globalThis.longTasks.splice(0));
  });
}

export function heapBytes(page) {
  return page.evaluate(() => {
    globalThis.gc();
    return performance.memory.usedJSHeapSize;
  });
}
