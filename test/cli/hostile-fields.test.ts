// Hostile text in every field that a command repeats beside names and words: settings, units, reports, links, hosts of a fleet,
// what asks for a person, and what terminals show.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callServer } from '../../src/cli/local/call-server.ts';
import { HomeRegistry } from '../../src/cli/tty/home-registry.ts';
import { connectKeeper } from '../../src/keeper/connect.ts';
import type { KeeperLink } from '../../src/keeper/link.ts';
import { firstLine, Place, type Running } from '../support/command-line.ts';
import { hostile, rawInOutput, Shown } from '../support/hostile-text.ts';
import { hasNats, LEFT_OUT, sharedNats } from '../support/nats.ts';
import { isSlowRun } from '../support/slow.ts';

const texts = Object.values(hostile);
/** Nine in each text; with `npm run test:slow` each alone. */
const together = isSlowRun
  ? texts
  : Array.from({ length: Math.ceil(texts.length / 9) }, (_, at) =>
      texts.slice(at * 9, at * 9 + 9).join(' '),
    );
/** Folders that have all of it in their names. */
const path = texts.map((text) => `d${text.replaceAll('/', '')}`).join('/');

let place: Place;
let host: KeeperLink;
let shown: Shown;

beforeAll(async () => {
  place = new Place();
  shown = new Shown(place);
  host = await connectKeeper({ home: place.home, env: { ...process.env, ...place.env } });
});
afterAll(async () => {
  await host.close();
  await place.close();
});

async function wrongOf(
  all: readonly (readonly string[])[],
  { by = shown, unfit }: { by?: Shown; unfit?: RegExp } = {},
): Promise<string[]> {
  const wrong: string[] = [];
  for (const args of all) wrong.push(...(await by.wrongOf(args, unfit)));
  return wrong;
}

/** A text in TOML and in JSON. */
function quoted(text: string): string {
  return JSON.stringify(text).replaceAll('\x7f', String.raw`\u007f`);
}

/** A program that has printed `text` and runs, on a terminal or not. */
async function printing(text: string, streams: 'pty' | 'separate'): Promise<string> {
  const argv = ['sh', '-c', 'printf "say %s" "$0"; printf "\\a."; exec cat', text];
  const { process } = await host.start('cli', { argv, streams, stdin: 'pipe', name: `n ${text}` });
  await host.wait('cli', { waits: [{ id: process.id, for: [{ kind: 'text', text: '.' }] }] });
  return process.id;
}

describe('hostile text', () => {
  it('[C24] is raw in no setting, wherever it comes from', async () => {
    const file = join(place.home, 'config.toml');
    const write = (content: string): void => writeFileSync(file, content, { mode: 0o600 });
    write('');
    const wrong: string[] = [];
    for (const text of together) {
      const more = { HOLDFAST_SERVE_DIRECTORY: `/a ${text}`, [`HOLDFAST_HOM${text}`]: text };
      write(`[serve]\nsocket = ${quoted(text)}\nallow-origin = [${quoted(text)}]\n`);
      const by = new Shown(place, more);
      expect(await by.by('config', 'serve.socket')).toContain('config.toml:2');
      wrong.push(...(await wrongOf([['config'], ['config', 'serve.directory']], { by })));
      for (const content of [text, `[serve]\nport = ${quoted(text)}`, `[${quoted(text)}]\na = 1`]) {
        write(content);
        wrong.push(...(await wrongOf([['config']])));
      }
    }
    write('');
    expect(wrong).toEqual([]);
  });

  it('[C24] is raw in no unit, report, link, client and folder of keys', async () => {
    const folder = join(place.folder, path);
    mkdirSync(folder, { recursive: true });
    const by = new Shown(place, { XDG_CONFIG_HOME: folder });
    const away = ['--home', join(folder, 'home')];
    const id = await printing(texts.join(''), 'separate');
    const wrong = [
      ...(await wrongOf(
        [
          ['service', 'install', '--no-start'],
          ['service', 'status'],
          ['service', 'remove'],
          ...['install', 'status', 'remove'].map((word) => ['service', word, ...away]),
        ],
        { by },
      )),
      ...(await wrongOf([
        ['debug', 'bundle', join(folder, 'report')],
        ['debug', 'bundle', join(folder, 'more'), '--commands', '--output', id],
        ['share', id],
        ['share', `n ${texts.join('')}`],
        ['dashboard', id, '--print'],
        ['dashboard', '--print', '--owner', texts.join('')],
        ['completion', 'processes'],
        ['fleet', 'init', '--keys', join(folder, 'keys')],
        ['fleet', 'admit', 'h1', 'KEY', '--keys', folder],
        ['fleet', 'forget', 'h1', '--keys', folder],
        ...['drain', 'undrain', 'leave', 'key', 'hosts'].map((verb) => ['fleet', verb, ...away]),
        ...['status', 'config', 'inbox', 'restart', 'doctor'].map((name) => [name, ...away]),
      ])),
      ...(await wrongOf(
        [
          ['mcp', '--print-config', 'cursor', ...away],
          ['mcp', '--print-config', 'claude-code', ...away],
          ['debug', 'bundle', '-', '--commands', '--output', id],
          ['run', '--', 'printf', 'say %s', texts.join('')],
        ],
        { unfit: rawInOutput },
      )),
    ];
    expect(wrong).toEqual([]);
  });

  it.each(together)('[C24] is raw in nothing that a terminal shows: %j', async (text) => {
    const title = `\x1b]2;t ${text.replaceAll(/[\x07\x1b]/g, '')}\x07`; // oxlint-disable-line no-control-regex
    const id = await printing(`${title}${text}`, 'pty');
    const on = (command: string, ...args: string[]): string[] => ['tty', command, id, ...args];
    const steps = JSON.stringify([{ wait: { text, timeout: 1 } }]);
    const printed = [
      on('snapshot', '--format', 'text'),
      on('wait', '--text', `not ${text}`, '--timeout', '1'),
    ];
    const said = [
      on('inspect'),
      on('send-keys', text),
      on('signal', text),
      on('resize', '--cols', text, '--rows', '24'),
      on('screenshot', '--profile', text),
      on('record', 'export', '--format', text),
      on('batch', text),
      on('batch', steps),
      ['tty', 'skills', 'get', text],
      ['tty', 'home', 'forget', `/no ${text}`],
      ['tty', 'gc', '--older-than', text],
      ['tty', 'create', '--cwd', `/no/${text}`],
      ['tty', 'create', '--env', text],
      ['tty', 'create', '--name', text, '--idle-timeout-ms', text],
    ];
    const wrong = [...(await wrongOf(printed, { unfit: rawInOutput })), ...(await wrongOf(said))];
    expect(wrong).toEqual([]);
  });

  it('[C24] is raw in nothing that needs a person, and in no list of homes and terminals', async () => {
    const registry = new HomeRegistry({ XDG_STATE_HOME: place.folder });
    for (const text of texts) {
      await printing(text, 'pty');
      const { process } = await host.start('cli', { argv: ['printf', '%s', text] });
      await host.wait('cli', { waits: [{ id: process.id, for: [{ kind: 'closed' }] }] });
      registry.note(join(place.folder, `home ${text}`));
    }
    const listed = [
      ['inbox'],
      ['inbox', '--quiet', '1ms'],
      ['tty', 'home', 'list'],
      ['tty', 'list'],
    ];
    expect(await wrongOf(listed)).toEqual([]);
  });

  it.each(together)('[C24] is raw in no refusal of a fleet: %j', async (text) => {
    const url = 'nats://127.0.0.1:9';
    const said = [
      ['join', url, '--name', text],
      ['join', text],
      ['join', url, '--label', `=${text}`],
      ['join', url, '--label', `${text.repeat(65)}=`],
      ['join', url, '--admission', `/no/${text}`],
      ['fleet', 'admit', text, text],
      ['fleet', 'forget', text],
    ];
    expect(await wrongOf(said)).toEqual([]);
  });

  it.skipIf(!hasNats)(`[C24] is raw in no list of a fleet's hosts${LEFT_OUT}`, async () => {
    const { url } = await sharedNats();
    const started: Running[] = [];
    const ready = async (...args: string[]): Promise<void> => {
      const program = place.start(...args, '--json');
      started.push(program);
      const line = await firstLine(program.child.stdout as NodeJS.ReadableStream);
      expect(JSON.parse(line)).toMatchObject({ pid: expect.any(Number) as number });
    };
    const plain = texts.map((text) => text.replaceAll('=', ''));
    const labels = plain.flatMap((text, at) =>
      at % 2 === 0 ? ['--label', `${text}=${plain[at + 1] ?? ''}`] : [],
    );
    const wrong: string[] = [];
    try {
      await ready('gateway', url, '--name', 'g1');
      await shown.by('dashboard', '--print');
      wrong.push(...(await wrongOf([['join', url, '--name', 'h1', ...labels]])));
      for (let seen = ''; !seen.includes('"h1"');)
        seen = JSON.stringify(await callServer(join(place.home, 'gateway'), '/v1/hosts'));
      expect(await shown.by('fleet', 'hosts')).toContain('h1');
      wrong.push(
        ...(await wrongOf(['hosts', 'drain', 'undrain', 'leave'].map((v) => ['fleet', v]))),
      );
    } finally {
      for (const { child, ended } of started) {
        child.kill('SIGTERM');
        await ended;
      }
    }
    expect(wrong).toEqual([]);
  });
});
