// `holdfast debug bundle`: what a bug report has, and what it never has.

import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Place, runHere, Running } from '../support/command-line.ts';

const place = new Place();
let file = '';
let id = '';
let token = '';
let env: NodeJS.ProcessEnv;
let server: Running;

beforeAll(async () => {
  env = {
    ...place.env,
    HOLDFAST_LOG: 'debug',
    API_SECRET: 'canary-of-variable',
    OTEL_EXPORTER_OTLP_HEADERS: 'x=canary-of-header',
  };
  file = join(place.folder, 'report.txt');
  const run = (...args: string[]) => runHere(args, { env });
  await run('run', '--background', 'true');
  writeFileSync(
    join(place.home, 'config.toml'),
    '[serve]\ncompletion-webhook = "http://127.0.0.1:9/canary-of-config"\n',
    { mode: 0o600 },
  );
  server = new Running(['serve', '--json', '--allow-host', 'canary-of-option'], { env });
  await server.until('stdout', '\n');
  token = (await run('token', 'admin')).stdout.trim();
  const { url } = JSON.parse(server.text('stdout')) as { url: string };
  const headers = { authorization: `Bearer ${token}` };
  await fetch(`${url}/v1/processes/x?after=canary-of-query`, { headers });
  const started = await run(
    'run',
    '--background',
    '--name',
    'canary-of-name',
    '--env',
    'X=canary-of-environment',
    'echo canary-of-output; echo canary-of-command; exit 7',
  );
  id = started.stdout.trim();
  await run('wait', id, '--for', 'closed');
  // Lines about normal work are written in batches.
  const log = join(place.home, 'keeper.log');
  while (!readFileSync(log, 'utf8').includes(`exit cli ${id}`)) await nextTurn();
});

afterAll(async () => {
  server.child.kill('SIGTERM');
  await server.ended;
  await place.close();
});

async function bundle(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runHere(['debug', 'bundle', file, '--force', ...args], {
    env,
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/report\.txt \(\d.*\) is written\. Read it before you send it\.\n$/);
  return readFileSync(file, 'utf8');
}

describe('holdfast debug bundle', () => {
  it('[DBG1] has versions, checks, figures, states and logs, and no token, value, command or output', async () => {
    const text = await bundle();
    const sections = Array.from(text.matchAll(/^== (.*)$/gm), ([, name]) => name);
    expect(sections).toEqual([
      'about',
      'checks',
      'keeper',
      'server',
      'settings',
      'files',
      'processes',
      'keeper.log.1',
      'keeper.log',
      'server.log.1',
      'server.log',
    ]);
    expect(text).not.toContain('cannot be found out');
    expect(text).toContain(`"node": "${process.version}"`);
    expect(text).toContain(`"id":"${id}"`);
    expect(text).toMatch(new RegExp(`exit cli ${id}: exit 7`));
    // What is set, by name.
    for (const name of ['HOLDFAST_LOG', 'OTEL_EXPORTER_OTLP_HEADERS', 'completion-webhook'])
      expect(text).toContain(name);
    expect(text).toContain('--allow-host');
    expect(text.match(/canary[-\w]*/g)).toBeNull();
    expect(text).not.toContain(token);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it('[DBG1] commands, names and output are there only where they are asked for', async () => {
    const commands = await bundle('--commands');
    expect([...new Set(commands.match(/canary[-\w]*/g))].toSorted()).toEqual([
      'canary-of-command',
      'canary-of-name',
      'canary-of-output',
    ]);
    const output = await bundle('--output', id);
    expect(output.slice(output.indexOf(`== output of ${id}`))).toContain(
      'canary-of-output\ncanary-of-command\n',
    );
    expect(output.slice(0, output.indexOf(`== output of ${id}`))).not.toContain('canary');
  });

  it('[DBG2] an existing file is kept, a secret in a log is left out, and a home without a keeper is described', async () => {
    const again = await runHere(['debug', 'bundle', file], { env });
    expect(again.code).toBe(2);
    expect(again.stderr).toContain('exists; --force overwrites it');
    const other = new Place();
    await other.finished('true');
    await other.run('shutdown');
    const secrets = `${token} Bearer abcdefghijkl http://me:pass@host/ canary-of-variable`;
    writeFileSync(join(other.home, 'server.log'), `an old program wrote ${secrets}\n`);
    const given = { ...other.env, API_SECRET: 'canary-of-variable' };
    const { stdout, code } = await runHere(['debug', 'bundle', '-'], { env: given });
    expect(code).toBe(0);
    expect(stdout).toContain('== keeper\nnot running\n');
    expect(stdout).toContain(
      'an old program wrote [token] Bearer [token] http://[password]@host/ [value of API_SECRET]',
    );
    expect((await other.json('status')).result['running']).toBe(false);
    await other.close();
  });
});
