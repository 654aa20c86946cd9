// Hostile text in every place where a command repeats what somebody else wrote: names, owners, commands, directories,
// files, words of the command line. The commands run in this process, on streams that say that they are terminals.
import { EventEmitter } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { commands } from '../../src/cli/commands.ts';
import { runProgram } from '../../src/cli/program.ts';
import { connectKeeper } from '../../src/keeper/connect.ts';
import type { KeeperLink } from '../../src/keeper/link.ts';
import { Place } from '../support/command-line.ts';
import { sized } from '../support/slow.ts';

const hostile: Readonly<Record<string, string>> = {
  clear: '\x1b[2J',
  clipboard: '\x1b]52;c;aGk=\x07',
  title: '\x1b]0;root@bank\x1b\\',
  'device string': '\x1bPq\x1b\\',
  'application command': '\x1b_G\x1b\\',
  'answer back': '\x1b[c',
  colour: '\x1b[31m',
  'unfinished sequence': '\x1b[3',
  reset: '\x1bc',
  bell: '\x07',
  backspace: 'ok\b\bno',
  'line feed': 'a\nFAKE: b',
  'carriage return': 'a\rFAKE: b',
  'vertical tab': '\v',
  'form feed': '\f',
  'shift out': '\x0e',
  'unit separator': '\x1f',
  delete: '\x7f',
  'next line': '\u0085',
  'C1 sequence': '\u009b31m',
  'C1 title': '\u009d0;x\u009c',
  'right-to-left override': '\u202egnp.exe',
  'left-to-right override': '\u202d',
  'right-to-left embedding': '\u202b',
  'pop direction': '\u202c',
  'left-to-right isolate': '\u2066',
  'right-to-left isolate': '\u2067',
  'first strong isolate': '\u2068',
  'pop isolate': '\u2069',
  'Arabic letter mark': '\u061c',
  'right-to-left mark': '\u200f',
  'line separator': '\u2028',
  'paragraph separator': '\u2029',
  'zero-width space': 'a\u200bb',
  'zero-width joiner': 'a\u200db',
  'word joiner': '\u2060',
  'byte order mark': '\ufeff',
  'soft hyphen': '\u00ad',
  'interlinear anchor': '\ufff9',
  'invisible times': '\u2062',
  'tag letter': '\u{e0041}',
  'Hangul filler': '\u3164',
  'grapheme joiner': '\u034f',
};

/** Nothing of this may be raw in what we write, except the line ends and tabs of our own. */
const raw = /\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}|\u3164|\u034f/u;
/** In what a program printed, joiners are part of the text, and a carriage return is a progress bar's. */
// oxlint-disable-next-line no-control-regex
const rawInOutput = /[\x00-\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]/u;

class Terminal extends EventEmitter {
  readonly isTTY = true;
  readonly columns = 200;
  shown = '';

  write(data: string | Uint8Array): boolean {
    this.shown += typeof data === 'string' ? data : Buffer.from(data).toString();
    return true;
  }
}

let place: Place;
let host: KeeperLink;
const covered = new Set<string>();

/** What a terminal is sent by a command, both streams together. */
async function shownBy(...args: string[]): Promise<string> {
  const terminal = new Terminal();
  const [command = '', ...rest] = args;
  covered.add(command);
  const env = { ...process.env, ...place.env, NO_COLOR: '1', XDG_STATE_HOME: place.folder };
  const options = { env, cwd: place.folder, stdout: terminal, stderr: terminal };
  await runProgram([command, ...rest], options);
  return terminal.shown;
}

/** What a command shows a person, or answers as JSON, with something raw in it, or without anything at all. */
async function wrongOf(args: readonly string[], unfit = raw): Promise<string[]> {
  const [command = '', ...rest] = args;
  const shown = await shownBy(...args);
  const json = await shownBy(command, ...placed(command, rest));
  const answered = json.startsWith('{') && 'ok' in (JSON.parse(json) as object);
  const found = [
    ...(shown === '' || hasRaw(shown, unfit) ? [shown] : []),
    ...(!answered || hasRaw(json, raw) ? [json] : []),
  ];
  return found.map((text) => `${JSON.stringify(args)}: ${JSON.stringify(text)}`);
}

function hasRaw(shown: string, unfit: RegExp): boolean {
  return unfit.test(shown.replaceAll(/[\n\t]/g, ''));
}

/** A word of `tty` goes before its flags. */
function placed(command: string, rest: readonly string[]): string[] {
  return command === 'tty'
    ? [...rest.slice(0, 1), '--json', ...rest.slice(1)]
    : ['--json', ...rest];
}

beforeAll(async () => {
  place = new Place();
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
      await shownBy('token', 'create', '--for', `o ${text}`);
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
    expect([...commands.keys()].filter((name) => !covered.has(name))).toEqual([]);
  });
});
