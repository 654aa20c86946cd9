// The files for containers: valid, in agreement with each other, and their command run as process 1 of a pid namespace. No image
// is built here: that needs one from a registry.

import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { describe, expect, it } from 'vitest';
import { everySetting } from '../../src/cli/settings/setting.ts';
import { firstLine, main, Place, root } from '../support/command-line.ts';
import { portToKeep } from '../support/ports.ts';

const folder = join(root, 'container');
const text = (name: string): string => readFileSync(join(folder, name), 'utf8');
const namespaces = spawnSync('unshare', ['--pid', '--fork', '--mount-proc', 'true']).status === 0;

/** The instructions of the Containerfile, continued lines joined. */
const instructions = text('Containerfile')
  .replaceAll(/^#.*\n/gm, '')
  .replaceAll(/\s*\\\n\s*/g, ' ')
  .split('\n')
  .filter(Boolean)
  .map((line) => ({ name: line.split(' ', 1)[0] ?? '', rest: line.slice(line.indexOf(' ') + 1) }));

function instruction(name: string): string {
  return instructions.find((each) => each.name === name)?.rest ?? '';
}

const words = (name: string): string[] => JSON.parse(instruction(name)) as string[];
const variables = Object.fromEntries(
  instruction('ENV')
    .split(' ')
    .map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]),
);
const healthCheck = JSON.parse(instruction('HEALTHCHECK').replace(/^.*?CMD /, '')) as string[];

describe('the files', () => {
  it('[UP9] the Containerfile has known instructions, no root user, and settings that exist', () => {
    const known =
      'ARG FROM RUN COPY ENV USER WORKDIR VOLUME EXPOSE STOPSIGNAL HEALTHCHECK ENTRYPOINT CMD';
    expect(instructions.filter(({ name }) => !known.split(' ').includes(name))).toEqual([]);
    expect(instruction('USER')).toBe('node');
    const names = [...everySetting.map(({ variable }) => variable), 'HOLDFAST_HOME', 'SHELL'];
    expect(Object.keys(variables).filter((name) => !names.includes(name))).toEqual([]);
    expect(variables['HOLDFAST_SERVE_PORT']).toBe(instruction('EXPOSE'));
    expect(variables['HOLDFAST_HOME']).toBe(instruction('VOLUME'));
  });

  it('[UP9] compose names that file, its port on loopback and its volume, and waits longer than the grace period', () => {
    const { services, volumes } = parse(text('compose.yaml')) as {
      services: { holdfast: Record<string, unknown> };
      volumes: object;
    };
    expect(services.holdfast).toMatchObject({
      build: { context: '..', dockerfile: 'container/Containerfile' },
      ports: [`127.0.0.1:${instruction('EXPOSE')}:${instruction('EXPOSE')}`],
      volumes: [`${Object.keys(volumes).join()}:${instruction('VOLUME')}`, './:/workspace'],
      stop_grace_period: '30s',
    });
  });

  it('[UP9] the dev container feature has its version, and its script is one of any shell', () => {
    const feature = JSON.parse(text('devcontainer-feature/devcontainer-feature.json')) as object;
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as object & {
      version: string;
    };
    expect(feature).toMatchObject({ id: 'holdfast', version });
    const script = join(folder, 'devcontainer-feature/install.sh');
    execFileSync('sh', ['-n', script]);
    const without = spawnSync('/bin/sh', [script], { env: { PATH: folder }, encoding: 'utf8' });
    expect([without.status, without.stderr]).toEqual([
      1,
      expect.stringContaining('add the feature'),
    ]);
  });
});

describe.skipIf(!namespaces)('its command as process 1', () => {
  it('[UP8] serves with its variables, is healthy, and its stop signal ends it with 0', async () => {
    const place = new Place();
    const port = await portToKeep();
    const env = {
      ...process.env,
      ...variables,
      ...place.env,
      HOLDFAST_SERVE_PORT: String(port),
      HOLDFAST_SERVE_DIRECTORY: place.folder,
    };
    const program = ([name, ...rest]: string[]): string[] => {
      expect(name).toBe('holdfast');
      return [process.execPath, main, ...rest];
    };
    const command = program([...words('ENTRYPOINT'), ...words('CMD')]);
    const outer = spawn(
      'unshare',
      ['--pid', '--fork', '--mount-proc', '--kill-child', ...command],
      {
        env,
        stdio: ['ignore', 'pipe', 'ignore'],
      },
    );
    const over = once(outer, 'close');
    expect(await firstLine(outer.stdout)).toContain(`http://0.0.0.0:${port}`);
    expect((await fetch(`http://127.0.0.1:${port}/v1/processes`)).status).toBe(401);
    const one = readFileSync(`/proc/${outer.pid}/task/${outer.pid}/children`, 'utf8').trim();
    const healthy = (): number | null => {
      const enter = ['--target', one, '--pid', '--mount', ...program(healthCheck)];
      return spawnSync('nsenter', enter, { env }).status;
    };
    expect(healthy()).toBe(0);
    expect(instruction('STOPSIGNAL')).toBe('SIGTERM');
    process.kill(Number(one), 'SIGTERM');
    expect(await over).toEqual([0, null]);
    expect((await place.run('status')).code).toBe(9);
    await place.close();
  });
});
