// Settings: options, variables and config.toml, and the keepers and servers that obey them.

import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { everySetting } from '../../src/cli/settings/setting.ts';
import { settings } from '../../src/cli/settings/table.ts';
import { connect } from '../../src/client/connect.ts';
import { connectKeeper } from '../../src/keeper/connect.ts';
import type { Limits } from '../../src/protocol/limits.ts';
import { Place, root, runHere, Running, type Ended } from '../support/command-line.ts';
import { OWNER } from '../support/hosts.ts';
import { portToKeep } from '../support/ports.ts';

let place: Place;
beforeEach(() => {
  place = new Place();
  mkdirSync(place.home, { mode: 0o700 });
});
afterEach(() => place.close());

function write(...lines: string[]): string {
  const file = join(place.home, 'config.toml');
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''), { mode: 0o600 });
  return file;
}

/** A command with further variables. */
function runWith(env: NodeJS.ProcessEnv, ...args: string[]): Promise<Ended> {
  return runHere(args, { env: { ...place.env, ...env } });
}

/** The settings that are not the default, as "value from". */
async function shown(env: NodeJS.ProcessEnv, ...args: string[]): Promise<Record<string, string>> {
  const { stdout } = await runWith(env, 'config', '--json', ...args);
  const { result } = JSON.parse(stdout) as {
    result: { settings: { key: string; value: unknown; from: string; where: string }[] };
  };
  const set = result.settings.filter(({ from, key }) => from !== 'default' && key !== 'home');
  return Object.fromEntries(
    set.map(({ key, value, where }) => [key, `${String(value)} from ${where}`]),
  );
}

async function keeperLimits(): Promise<Limits> {
  const link = await connectKeeper({ home: place.home, env: {}, startIfMissing: false });
  try {
    return await link.limits(OWNER, {});
  } finally {
    await link.close();
  }
}

describe('where a value comes from', () => {
  it('[CO1] a variable goes before the file, the file before the default, and each is named', async () => {
    const file = write(
      '[serve]',
      'allow-host = [',
      '  "one.example",',
      '  "two.example",',
      ']',
      'allow-remote = true',
      '',
      '[keeper]',
      'idle = "2m"',
      'bubblewrap = "bin/bwrap"',
      '[limits]',
      'graceMs = 1500',
      'totalBytes = "1G"',
    );
    expect(await shown({ HOLDFAST_IDLE: '' })).toEqual({
      'keeper.idle': `2m from ${file}:9`,
      'keeper.bubblewrap': `${join(place.home, 'bin/bwrap')} from ${file}:10`,
      'limits.totalBytes': `1G from ${file}:13`,
      'limits.graceMs': `1500ms from ${file}:12`,
      'serve.allow-host': `one.example,two.example from ${file}:2`,
      'serve.allow-remote': `true from ${file}:6`,
    });
    const variables = {
      HOLDFAST_IDLE: '3m',
      HOLDFAST_LIMITS: '{"graceMs":2500}',
      HOLDFAST_SERVE_ALLOW_HOST: 'three.example',
      HOLDFAST_SERVE_ALLOW_REMOTE: 'off',
    };
    expect(await shown(variables)).toMatchObject({
      'keeper.idle': '3m from HOLDFAST_IDLE',
      'limits.graceMs': '2500ms from HOLDFAST_LIMITS',
      'limits.totalBytes': `1G from ${file}:13`,
      'serve.allow-host': 'three.example from HOLDFAST_SERVE_ALLOW_HOST',
      'serve.allow-remote': 'off from HOLDFAST_SERVE_ALLOW_REMOTE',
    });
  });

  it('[CO1] an option goes before the file; a boolean can be taken back', async () => {
    const port = await portToKeep();
    write('[serve]', `port = ${port}`, 'insecure-no-auth = true');
    const server = place.start('serve', '--port', '0', '--insecure-no-auth=false', '--json');
    await server.until('stdout', '\n');
    const { url } = JSON.parse(server.text('stdout')) as { url: string };
    expect(new URL(url).port).not.toBe(String(port));
    expect((await fetch(`${url}/v1/processes`)).status).toBe(401);
    server.child.kill('SIGTERM');
    await server.ended;
  });

  it('[CO1] the port that Kubernetes sets for a service of this name is none of ours', async () => {
    expect(await shown({ HOLDFAST_GATEWAY_PORT: 'tcp://10.0.0.1:80' }, 'gateway')).toEqual({});
  });

  it('[CO5] for people: a table, one setting, an example that is valid as it is and with its comments removed', async () => {
    const table = (await runWith({ HOLDFAST_SERVE_PROT: '1' }, 'config')).stdout;
    for (const { key } of everySetting) expect(table).toContain(`\n${key} `);
    expect(table).toContain('did you mean HOLDFAST_SERVE_PORT?');
    expect((await place.run('config', 'serve.host')).stdout).toMatch(
      /^SETTING.*\nserve\.host .*\n$/,
    );
    expect(await place.run('config', 'serve.hots')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('did you mean "serve.host"?'),
    });
    const example = (await place.run('config', '--example')).stdout;
    write(example);
    expect(await shown({ HOLDFAST_IDLE: '' })).toEqual({});
    const sections = Object.keys(settings).length;
    expect(example.match(/^\[/gm)).toHaveLength(sections);
    write(...example.split('\n').filter((line) => line.startsWith('[')), '[serve.nothing]');
    expect((await place.run('config')).code).toBe(2);
  });
});

describe('what makes no sense', () => {
  const cases: [string, string[], string][] = [
    [
      'an unknown setting',
      ['[serve]', '', 'prot = 1'],
      ':3: unknown setting "serve.prot"; did you mean "serve.port"?',
    ],
    [
      'an unknown table',
      ['[sevre]', 'port = 1'],
      ':1: unknown table [sevre]; did you mean [serve]?',
    ],
    [
      'a setting without its table',
      ['# mine', 'idle = "5m"'],
      ':2: "idle" belongs below [keeper] or [mcp].',
    ],
    [
      'a setting of another table',
      ['[keeper]', 'allow-host = "a"'],
      ':2: unknown setting "keeper.allow-host"; there is "serve.allow-host".',
    ],
    ['a wrong number', ['[serve]', 'port = 70000'], ':2: serve.port "70000" is more than 65535.'],
    [
      'a wrong time',
      ['[mcp]', 'max-wait = "soon"'],
      ':2: mcp.max-wait "soon" is not a duration such as',
    ],
    [
      'a text for a boolean',
      ['[serve]', 'allow-remote = "yes"'],
      ':2: serve.allow-remote must be true or false.',
    ],
    [
      'a list where one value belongs',
      ['[serve]', 'port = [1]'],
      ':2: serve.port must be an integer.',
    ],
    [
      'a wrong choice over several lines',
      ['[mcp]', 'cancel = """', 'kill"""'],
      ':2: mcp.cancel "kill" is not one of detach, interrupt.',
    ],
    ['an empty value', ['[serve]', 'host = ""'], ':2: serve.host must not be empty; leave it out.'],
    ['no TOML', ['[serve]', 'port = = 1'], ':2: Invalid TOML'],
  ];
  it.each(cases)(
    '[CO2] %s is refused with file, line and what was meant',
    async (_, lines, message) => {
      const file = write(...lines);
      for (const command of [['config'], ['run', 'true'], ['serve']]) {
        const { code, stderr } = await place.run(...command);
        expect([code, stderr]).toEqual([
          command[0] === 'run' ? 125 : 2,
          expect.stringContaining(`${file}${message}`),
        ]);
      }
      expect((await place.json('status')).result).toMatchObject({ running: false });
    },
  );

  it('[CO2] in a variable is refused by its name', async () => {
    const wrong: [NodeJS.ProcessEnv, string][] = [
      [{ HOLDFAST_SERVE_PORT: 'x' }, 'HOLDFAST_SERVE_PORT "x" is not'],
      [{ HOLDFAST_LIMITS: '{' }, 'HOLDFAST_LIMITS is not a JSON object'],
      [
        { HOLDFAST_LIMITS: '{"gracems":1}' },
        'there is no limit "gracems"; did you mean "graceMs"?',
      ],
      [{ HOLDFAST_LIMITS: '{"graceMs":"soon"}' }, 'HOLDFAST_LIMITS: graceMs "soon" is not'],
      [{ HOLDFAST_CGROUPS: 'maybe' }, 'HOLDFAST_CGROUPS "maybe" is not one of'],
    ];
    for (const [env, message] of wrong) {
      const { code, stderr } = await runWith(env, 'config');
      expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
    }
  });

  it('[CO3] a file that others may write is refused, also by doctor', async () => {
    const file = write('[keeper]');
    chmodSync(file, 0o666);
    const { code, stderr } = await place.run('run', 'true');
    expect([code, stderr]).toEqual([125, expect.stringContaining('can be changed by other users')]);
    expect((await place.run('doctor')).stdout).toMatch(/WRONG +settings/);
  });

  it('[CO2] hinders no command that only asks a keeper that runs', async () => {
    const id = await place.background('sleep 1000');
    write('[serve]', 'prot = 1');
    expect((await place.run('ps', '-q')).stdout.trim()).toBe(id);
    expect((await place.run('stop', id)).code).toBe(0);
    expect((await place.run('run', 'echo on')).stdout).toBe('on\n');
  });
});

describe('a keeper and a server', () => {
  it('[CO4] of a command, of the SDK, of serve, of up and of mcp obey the file', async () => {
    write('[limits]', 'graceMs = 1501', '[serve]', 'allow-host = ["proxy.example"]');
    const check = async (): Promise<void> => {
      expect(await keeperLimits()).toMatchObject({ graceMs: 1501 });
      expect(await place.run('shutdown')).toMatchObject({ code: 0 });
    };
    await place.run('run', 'true');
    await check();
    const holdfast = await connect({ home: place.home, env: { ...process.env, ...place.env } });
    await holdfast.close();
    await reachable();
    await check();
    for (const command of ['serve', 'up']) {
      const running = place.start(command);
      await running.until('stdout', 'Holdfast serves');
      await reachable();
      await check();
      await running.ended;
    }
    const mcp = new Running(['mcp'], { env: place.env });
    const call = { jsonrpc: '2.0', method: 'tools/call', id: 2 };
    const params = { name: 'execute', arguments: { command: 'echo done' } };
    const hello = {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 't', version: '1' },
    };
    const say = (message: object): void =>
      void mcp.child.stdin?.write(`${JSON.stringify(message)}\n`);
    say({ jsonrpc: '2.0', id: 1, method: 'initialize', params: hello });
    say({ ...call, params });
    await mcp.until('stdout', 'done');
    mcp.child.stdin?.end();
    await mcp.ended;
    await check();
  });

  async function reachable(): Promise<void> {
    const { server } = (await place.json('status')).result as { server: { url: string } };
    const answer = await fetch(`${server.url}/readyz`, { headers: { host: 'proxy.example' } });
    expect(answer.status).toBe(200);
  }

  it('[CO4] a restart takes what the file says now, and keeps what was typed', async () => {
    const [first, second] = [await portToKeep(), await portToKeep()];
    const url = async (): Promise<string> =>
      ((await place.json('status')).result as { server: { url: string } }).server.url;
    await place.run('restart');
    const free = await url();
    await place.run('restart');
    expect(await url()).toBe(free);
    write('[serve]', `port = ${first}`);
    expect(await place.run('restart')).toMatchObject({ code: 0 });
    expect(await url()).toBe(`http://127.0.0.1:${first}`);
    await place.run('restart', '--port', String(second));
    await place.run('restart');
    expect(await url()).toBe(`http://127.0.0.1:${second}`);
  });
});

describe('the page', () => {
  it('[CO6] docs/operations/configuration.md repeats the table of settings', async () => {
    const rows = everySetting.map(({ key, option, variable, row }) => {
      const usual = row.usual === undefined ? '' : `\`${row.usual}\``;
      const names = [option === undefined ? '' : `\`${option}\``, `\`${variable}\``];
      return `| \`${key}\` | ${names.join(' | ')} | ${usual} | ${row.about.replaceAll('|', '\\|')} |`;
    });
    const file = join(root, 'docs/operations/configuration.md');
    // `vitest -u` writes it anew.
    const page = readFileSync(file, 'utf8').replace(
      /(?:^\| `.*\n)+/m,
      () => `${rows.join('\n')}\n`,
    );
    await expect(page).toMatchFileSnapshot(file);
  });
});
