// The systemd user unit. No systemd runs on the machines of these tests: its own checker reads the unit, the line that it
// would start is started, and a program in its place writes down what it is asked.

import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { programIn } from '../../src/cli/local/unit-file.ts';
import { main, Place, runHere, Running, type Ended } from '../support/command-line.ts';

const canVerify = spawnSync('systemd-analyze', ['--version']).status === 0;

let place: Place;
let config: string;
let unit: string;
beforeEach(() => {
  place = new Place();
  config = join(place.folder, 'config');
  unit = join(config, 'systemd/user/holdfast.service');
});
afterEach(() => place.close());

/** Without systemd's programs, unless a folder with some is given. */
function service(args: string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const usual = { ...place.env, HOLDFAST_IDLE: '', XDG_CONFIG_HOME: config, PATH: place.folder };
  return runHere(['service', ...args], { env: { ...usual, ...env } });
}

/** Programs with the names of systemd's that write down their arguments. */
function recorded(): { env: NodeJS.ProcessEnv; calls: () => string[] } {
  const folder = join(place.folder, 'bin');
  const log = join(folder, 'calls');
  mkdirSync(folder);
  for (const [name, said] of [
    ['systemctl', 'ActiveState=active\nSubState=running\nUnitFileState=enabled\nMainPID=4242'],
    ['loginctl', 'no'],
  ] as const) {
    const file = join(folder, name);
    writeFileSync(file, `#!/bin/sh\necho "$*" >> ${log}\ncat <<E\n${said}\nE\n`);
    chmodSync(file, 0o755);
  }
  return {
    env: { PATH: `${folder}:/usr/bin:/bin` },
    calls: () => (existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []),
  };
}

describe('a machine without systemd', () => {
  it('[SD1] says so and writes nothing; with --no-start the unit is written', async () => {
    const { code, stderr } = await service(['install']);
    expect([code, existsSync(unit)]).toEqual([10, false]);
    expect(stderr).toContain('has no systemd');
    expect(stderr).toContain('--no-start');
    expect(stderr).toContain('holdfast up');
    expect(await service(['install', '--no-start'])).toMatchObject({ code: 0 });
    const text = readFileSync(unit, 'utf8');
    for (const line of ['Delegate=yes', 'KillMode=mixed', 'TimeoutStopSec=35', 'Type=exec'])
      expect(text).toContain(`\n${line}\n`);
    const status = await service(['status']);
    expect([status.code, status.stdout]).toEqual([
      1,
      expect.stringContaining('systemd does not answer'),
    ]);
    expect(await service(['remove'])).toMatchObject({ code: 0 });
    expect(existsSync(unit)).toBe(false);
    expect((await service(['remove'])).stdout).toContain('There is no unit');
  });

  it('[SD1] words that make no sense are refused', async () => {
    for (const args of [['instal'], [], ['install', '--name', 'a/b'], ['install', 'more']])
      expect((await service(args)).code).toBe(2);
  });
});

describe('a unit', () => {
  it('[SD2] that is not ours is never changed or removed, a link included', async () => {
    mkdirSync(dirname(unit), { recursive: true });
    writeFileSync(unit, '[Service]\nExecStart=/bin/true\n');
    for (const args of [['install', '--no-start'], ['remove']]) {
      const { code, stderr } = await service(args);
      expect([code, stderr]).toEqual([2, expect.stringContaining('left as it is')]);
    }
    expect(readFileSync(unit, 'utf8')).toContain('/bin/true');
    const other = join(dirname(unit), 'linked.service');
    symlinkSync('/dev/null', other);
    expect((await service(['install', '--no-start', '--name', 'linked'])).code).toBe(2);
    expect((await service(['status'])).stdout).toContain('not made by Holdfast');
  });

  it('[SD2] of another home keeps its name', async () => {
    await service(['install', '--no-start']);
    const { code, stderr } = await service([
      'install',
      '--no-start',
      '--home',
      join(place.folder, 'b'),
    ]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('is the service of')]);
  });

  it('[SD3] starts what it names, also with odd characters in its paths, and SIGTERM ends it with 0', async () => {
    const home = join(place.folder, `a "b" 100% $HOME \\`);
    mkdirSync(home, { mode: 0o700 });
    writeFileSync(join(home, 'config.toml'), '[up]\ngrace = "90s"\n', { mode: 0o600 });
    const words = ['install', '--no-start', '--home', home];
    expect(await service(words, { PATH: `${place.folder}:/usr/bin` })).toMatchObject({ code: 0 });
    const text = readFileSync(unit, 'utf8');
    expect(text).toContain('TimeoutStopSec=120');
    expect(text).toContain(String.raw`HOLDFAST_HOME=${place.folder}/a \"b\" 100%% $HOME \\"`);
    expect(programIn(text)).toEqual([process.execPath, main]);
    const [, line = ''] = /^ExecStart=(.*)$/m.exec(text) ?? [];
    expect(line).toMatch(/ "up"$/);
    const running = new Running(['up'], { env: { ...place.env, HOLDFAST_HOME: home } });
    await running.until('stdout', 'SIGTERM ends everything');
    running.child.kill('SIGTERM');
    expect(await running.ended).toMatchObject({ code: 0 });
  });

  it.skipIf(!canVerify)('[SD3] passes the check of systemd itself', async () => {
    const home = join(place.folder, 'with a space and 50%');
    const { PATH: path } = process.env;
    expect(await service(['install', '--no-start', '--home', home], { PATH: path })).toMatchObject({
      code: 0,
    });
    const checked = spawnSync('systemd-analyze', ['--user', '--man=no', 'verify', unit], {
      encoding: 'utf8',
      env: { ...process.env, XDG_RUNTIME_DIR: place.folder },
    });
    expect([checked.status, checked.stderr]).toEqual([0, '']);
  });
});

describe('with systemd', () => {
  it('[SD4] it is enabled and started, its state is shown, removing stops it; what it cannot have is named', async () => {
    const { env, calls } = recorded();
    const installed = await service(['install'], { ...env, HOLDFAST_SERVE_PORT: '4100' });
    expect(installed).toMatchObject({ code: 0 });
    expect(installed.stdout).toContain('loginctl enable-linger');
    expect(installed.stdout).toContain('HOLDFAST_SERVE_PORT');
    const asked = calls().filter((call) => !/show|verify/.test(call));
    expect(asked).toEqual([
      '--user daemon-reload',
      '--user enable holdfast.service',
      '--user start holdfast.service',
    ]);
    const status = await service(['status', '--json'], env);
    expect(JSON.parse(status.stdout)).toMatchObject({
      result: { ours: true, gone: [], state: { active: 'active (running)', enabled: 'enabled' } },
    });
    expect(status.code).toBe(0);
    writeFileSync(unit, readFileSync(unit, 'utf8').replace(main, '/gone/main.js'));
    const gone = await service(['status'], env);
    expect([gone.code, gone.stdout]).toEqual([1, expect.stringContaining('/gone/main.js is gone')]);
    expect(await service(['remove'], env)).toMatchObject({ code: 0 });
    expect(calls()).toContain('--user disable --now holdfast.service');
    expect(existsSync(unit)).toBe(false);
  });

  it('[SD4] a keeper that runs already is not ended; what to do is said', async () => {
    const { env, calls } = recorded();
    const id = await place.background('sleep 1000');
    const { code, stdout } = await service(['install'], env);
    expect([code, stdout]).toEqual([0, expect.stringContaining('holdfast shutdown && systemctl')]);
    expect(calls()).not.toContain('--user start holdfast.service');
    expect((await place.run('ps', '-q')).stdout.trim()).toBe(id);
  });
});
