// Takes the picture of the dashboard for the README: a server of its own with a few processes, in a browser.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const main = join(root, 'dist', 'cli', 'main.js');
const home = mkdtempSync(join(tmpdir(), 'holdfast-picture-'));
const env = { ...process.env, HOLDFAST_HOME: home };
const holdfast = (...args) =>
  execFileSync(process.execPath, [main, ...args], { encoding: 'utf8', env }).trim();

const PROCESSES = [
  [
    'agent-1',
    'tests',
    'i=0; while :; do i=$((i+1)); echo "ok $i - widgets/part-$i"; sleep 0.2; done',
  ],
  ['agent-1', 'web', 'exec python3 -m http.server 0 --bind 127.0.0.1'],
  ['agent-1', 'lint', 'echo "src/index.ts: 2 problems"; exit 1'],
  ['agent-2', 'types', 'echo "no problem found"'],
  ['agent-2', 'docs', 'exec sleep 600'],
];
const TERMINAL =
  'echo "This operation needs a one-time password."; printf "Enter OTP: \\a"; read otp';

const server = spawn(process.execPath, [main, 'serve', '--json', '--port', '0', '--home', home], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
await once(server.stdout, 'data');
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
});
try {
  for (const [owner, name, command] of PROCESSES)
    holdfast('run', '--background', '--owner', owner, '--name', name, command);
  holdfast('run', '--background', '--pty', '--owner', 'agent-2', '--name', 'publish', TERMINAL);
  const viewport = { width: 1120, height: 460 };
  const page = await browser.newPage({ viewport, colorScheme: 'dark' });
  await page.goto(holdfast('dashboard', '--print'));
  await page.getByRole('link', { name: 'needs you' }).waitFor();
  await page.keyboard.press('o');
  await page.locator('.row.group').first().waitFor();
  await page.screenshot({ path: join(root, 'docs', 'dashboard.png') });
} finally {
  await browser.close();
  holdfast('shutdown');
  server.kill();
  rmSync(home, { recursive: true, force: true });
}
