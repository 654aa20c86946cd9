// What a person sees of a fleet: the dashboard's table of hosts, a terminal of another machine, and the metrics.

import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MARKER_NAME } from '../../src/host/start/environment.ts';
import {
  hasBrowser,
  accessFaults,
  openPage,
  signInLink,
  startBrowser,
} from '../support/browser.ts';
import { FleetPlace } from '../support/fleet-place.ts';
import {
  inProcess,
  onCleanup,
  outputText,
  OWNER,
  startProcess,
  waitFor,
} from '../support/hosts.ts';
import { hasNats, LEFT_OUT, sharedNats } from '../support/nats.ts';

const main = join(fileURLToPath(new URL('../..', import.meta.url)), 'dist/cli/main.js');

let place: FleetPlace;
let gateway: Awaited<ReturnType<FleetPlace['ready']>>;
let host: typeof gateway;
beforeEach(async () => {
  place = new FleetPlace();
  const { url } = await sharedNats();
  gateway = await place.ready('gateway', url, '--name', 'g1');
  host = await place.ready('join', url, '--name', 'h1', '--label', 'pool=<b>a');
  await place.states({ h1: 'here' });
});
afterEach(async () => {
  process.kill(host.pid, 'SIGCONT');
  await place.close();
});

describe.skipIf(!hasNats)(`a fleet, to a person${LEFT_OUT}`, () => {
  it.skipIf(!hasBrowser)(
    '[FL87] the dashboard shows the hosts and what became of them',
    async () => {
      const browser = await startBrowser();
      onCleanup(() => browser.close());
      const { page, faults } = await openPage(browser);
      await page.goto(await signInLink(gateway.home));
      await page.locator('.shell').waitFor();
      await page.goto(`${new URL(page.url()).origin}/#/host`);
      const row = page.getByRole('row', { name: /^h1 here/ });
      await row.waitFor();
      expect(await row.innerText()).toContain('pool=<b>a');
      await page.getByText('1 of 1 are here.').waitFor();
      expect(await accessFaults(page)).toEqual([]);
      process.kill(host.pid, 'SIGSTOP');
      await page.getByRole('row', { name: /^h1 silent/ }).waitFor();
      await page.getByText('0 of 1 are here.').waitFor();
      process.kill(host.pid, 'SIGCONT');
      await row.waitFor();
      expect(faults).toEqual([]);
    },
  );

  it('[FL36] the metrics count the hosts while none answers', async () => {
    process.kill(host.pid, 'SIGSTOP');
    await place.states({ h1: 'silent' });
    const token = (await place.run('token', 'admin', '--home', gateway.home)).stdout.trim();
    const headers = { Authorization: `Bearer ${token}` };
    const answer = await fetch(`${gateway.url}/metrics`, { headers });
    const text = await answer.text();
    expect(answer.status).toBe(200);
    expect(text).toContain('holdfast_fleet_hosts{state="here"} 0\n');
    expect(text).toContain('holdfast_fleet_hosts{state="silent"} 1\n');
  });

  it('[FL88] a person attaches to a terminal of another machine, types and detaches', async () => {
    const client = await place.client(gateway.url, gateway.home);
    const script = 'echo begun; read x; echo got $x; exec sleep 600';
    const terminal = await client.start(script, { streams: 'pty' });
    await terminal.waitForLog('begun');
    const near = await inProcess();
    const seat = await startProcess(near, {
      // Not as a program of that process: it would not find what others run.
      argv: ['env', '-u', MARKER_NAME, process.execPath, main, 'attach', `h1/${terminal.id}`],
      env: { HOLDFAST_HOME: place.home },
      streams: 'pty',
    });
    await waitFor(near, seat, { kind: 'text', text: 'begun' });
    await near.write(OWNER, { id: seat, data: Buffer.from('typed\r') });
    await waitFor(near, seat, { kind: 'text', text: 'got typed' });
    await near.write(OWNER, { id: seat, data: Buffer.from('\x1d') });
    const { process: ended } = await waitFor(near, seat, { kind: 'closed' });
    expect(ended.outcome).toEqual({ kind: 'exit', code: 0 });
    expect(await outputText(near, seat)).toContain(`detached from ${terminal.id}`);
    expect((await terminal.status()).state).toBe('running');
    await client.close();
  });
});
