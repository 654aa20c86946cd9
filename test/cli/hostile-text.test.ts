// Hostile text in every place where a command repeats what somebody else wrote: names, owners, commands, directories,
// files, words of the command line. The commands run in this process, on streams that say that they are terminals.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { commands } from '../../src/cli/commands.ts';
import { connectKeeper } from '../../src/keeper/connect.ts';
import type { KeeperLink } from '../../src/keeper/link.ts';
import { Place } from '../support/command-line.ts';
import { hostile, rawInOutput, Shown } from '../support/hostile-text.ts';
import { sized } from '../support/slow.ts';

let place: Place;
let host: KeeperLink;
let shown: Shown;
const wrongOf = (...args: Parameters<Shown['wrongOf']>): Promise<string[]> =>
  shown.wrongOf(...args);

beforeAll(async () => {
  place = new Place();
  shown = new Shown(place);
  host = await connectKeeper({ home: place.home, env: { ...process.env, ...place.env } });
});
afterAll(async () => {
  await host.close();
  await place.close();
});

describe('hostile text', () => {
  // Every third of them; all with `npm run test:slow`. The lists below have all.
  it.each(Object.entries(hostile).filter((_, at) => at % sized(3, 1) === 0))(
    '[C24] is raw in nothing that a command says of one process: %s',
    async (_title, text) => {
      const cwd = join(place.folder, `dir ${text.replaceAll('/', '')}`);
      mkdirSync(cwd, { recursive: true });
      const owner = `o ${text}`;
      const argv = ['sh', '-c', 'printf "%s\\n" "$0"; exec cat', `say ${text} end`];
      const spec = { argv, cwd, name: `n ${text}`, key: `k ${text}`, stdin: 'pipe' } as const;
      const { process } = await host.start(owner, { ...spec, labels: { note: text } });
      const { id } = process;
      await host.wait(owner, { waits: [{ id, for: [{ kind: 'text', text: 'say' }] }] });
      const ofOne: readonly (readonly string[])[] = [
        ['inspect', id],
        ['wait', id, '--for', 'text=say'],
        ['send', `n ${text}`, text, '--owner', `x${text}`],
        ['kill', id, '--signal', text],
        ['kill', id, '--signal', 'CONT'],
        ['stop', `n ${text}`],
        ['export', id, join(cwd, text.replaceAll('/', ''))],
        ['wait', id],
        ['inspect', `n ${text}`],
        ['logs', id, '--grep', `(${text}`],
        ['logs', text],
        ['attach', text],
        ['ps', text],
        ['run', '--cwd', join(cwd, 'nosuch'), 'true'],
        ['run', '--', `./${text}`],
        ['run', `--${text}`, 'true'],
        ['rm', id],
        ['tty', 'wait', text, '--exit'],
        ['tty', 'create', '--shell', `/nosuch/${text}`],
      ];
      const wrong: string[] = [];
      for (const args of ofOne.slice(0, 7)) wrong.push(...(await wrongOf(args)));
      wrong.push(...(await wrongOf(['logs', id], rawInOutput)));
      wrong.push(...(await wrongOf(['search', id, 'say'], rawInOutput)));
      for (const args of ofOne.slice(7)) wrong.push(...(await wrongOf(args)));
      expect(wrong).toEqual([]);
    },
  );

  it('[C24] is raw in no list of processes, terminals and tokens', async () => {
    const wrong: string[] = [];
    for (const text of Object.values(hostile)) {
      const shell = {
        argv: ['sh', '-c', 'exec cat', text],
        streams: 'pty' as const,
        name: `t ${text}`,
      };
      const { process } = await host.start(`o ${text}`, shell);
      const { process: said } = await host.start(`o ${text}`, {
        command: `echo say; sleep 300 # ${text}`,
        name: text,
      });
      const waits = [{ id: said.id, for: [{ kind: 'text' as const, text: 'say' }] }];
      await host.wait(`o ${text}`, { waits });
      wrong.push(...(await wrongOf(['tty', 'inspect', process.id])));
      wrong.push(...(await wrongOf(['inspect', process.id])));
      await shown.by('token', 'create', '--for', `o ${text}`);
    }
    wrong.push(...(await wrongOf(['search', '--all', 'say'], rawInOutput)));
    for (const args of [
      ['ps'],
      ['ps', '--all'],
      ['tty', 'list'],
      ['tty', 'list', '--all'],
      ['token', 'list'],
      ['inbox'],
      ['status'],
      ['stop', '--owner', `o ${hostile['line feed']}`],
      ['prune', '--yes'],
    ])
      wrong.push(...(await wrongOf(args)));
    expect(wrong).toEqual([]);
  });

  it('[C24] is raw in no refusal, whatever the command and wherever it stands', async () => {
    const wrong: string[] = [];
    const text = Object.values(hostile).join('');
    for (const name of commands.keys()) {
      const [command, ...inner] = name === 'tty' ? ['tty', 'list'] : [name];
      wrong.push(...(await wrongOf([command, ...inner, text, text, text])));
      wrong.push(...(await wrongOf([command, ...inner, `--${text}`])));
      wrong.push(...(await wrongOf([command, ...inner, '--owner', '*', text])));
    }
    const home = ['--home', join('/dev/null', text.replaceAll('/', ''))];
    for (const command of ['ps', 'status', 'doctor', 'prune', 'logs', 'export', 'run', 'restart'])
      wrong.push(
        ...(await wrongOf([command, ...home, ...(/logs|export|run/.test(command) ? ['x'] : [])])),
      );
    for (const args of [
      [text],
      ['mcp', '--print-config', text],
      ['exec-server', '--ws-auth', text],
      ['exec-server', '--listen', text],
      ['serve', '--host', text],
      ['serve', '--allow-host', text],
      ['token', 'create', '--chat', text],
      ['token', 'revoke', text],
      ['wait', 'x', '--for', text],
      ['run', '--timeout', text, 'true'],
      ['tty', text],
      ['tty', 'run', text, 'x'],
      ['tty', 'home', 'forget', text],
    ])
      wrong.push(...(await wrongOf(args)));
    expect(wrong).toEqual([]);
    expect([...commands.keys()].filter((name) => !shown.covered.has(name))).toEqual([]);
  });
});
