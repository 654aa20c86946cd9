// What others make of the same bytes: tmux and libvterm (the one inside vim) show what we show, asciinema reads our casts.
// Needs those programs, so it runs by `npm run test:screen` only. With SCREEN_RECORD=1 what they agreed on becomes the
// recordings that screen-recordings.test.ts plays, where nobody needs them.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { asciicast } from '../../src/screen/recording/asciicast.ts';
import { Emulator } from '../../src/screen/emulator/emulator.ts';
import { toSnapshot } from '../../src/screen/view/view.ts';
import { visibleLines } from '../../src/screen/view/snapshot.ts';
import { Tape } from '../support/screen-events.ts';

const wanted = process.env['SCREEN_PEERS'] !== undefined;
const recorded = process.env['SCREEN_RECORD'] !== undefined;
const recordings = new URL('../recordings', import.meta.url).pathname;
const has = (program: string, ...args: string[]): boolean =>
  spawnSync(program, args).error === undefined;
const size = { cols: 80, rows: 24 } as const;

/** Recorded here and now, from real programs on a real terminal. */
const sessions: Readonly<Record<string, readonly [file: string, keys: string]>> = {
  'a progress bar': [
    "for i in 1 2 3 4 5 6 7 8 9; do printf '\\r[%-20s] %d%%' \"$(printf '#%.0s' $(seq $i))\" $((i * 10)); done; echo; ls -la --color=always /usr | head -15",
    '',
  ],
  'less in its own screen': ['less /etc/services', 'jjjj'],
  'less, left again': ['echo before; less /etc/services; echo after', 'q'],
  'vim with colours': ["vim -u NONE -c 'syntax on' -c 'set number' /etc/profile", 'jjj'],
  // Alone among its processes, so that a recording tells nothing of the machine.
  'htop, looked through': [
    'unshare -pf --mount-proc env -i TERM=$TERM LC_ALL=C.UTF-8 htop -d 5',
    'ttjjH',
  ],
  'wide and combined characters': [
    "printf 'e\\314\\201 \\346\\274\\242\\345\\255\\227 a\\tb\\n'; printf '\\342\\224\\214\\342\\224\\200\\342\\224\\220\\n'",
    '',
  ],
  'margins, inserted and deleted lines': [
    "printf '%s\\n' 1 2 3 4 5 6 7 8; printf '\\033[3;6r\\033[4;1H\\033[2Lnew\\033[M\\033[r\\033[12;1H\\033[2@\\033[3PX'",
    '',
  ],
  'long lines that wrap': ["seq -s ' ' 1 200; printf 'x%.0s' $(seq 1 170); echo", ''],
};

describe.skipIf(!wanted)('others', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'holdfast-peers-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  /** The bytes a program prints on a terminal of this size, recorded by util-linux's script. */
  function bytesOf(command: string, keys: string): Buffer {
    const log = join(folder, 'typescript');
    const typing = Array.from(keys, (key) => `sleep 0.3; printf '${key}'`).join('; ');
    const env = { ...process.env, TERM: 'xterm-256color', LC_ALL: 'C.UTF-8', SHELL: '/bin/sh' };
    const inner = `stty cols ${size.cols} rows ${size.rows}; ${command}`;
    const line = `(sleep 0.5; ${typing || 'true'}; sleep 0.7) | timeout 8 script -q -f -e -c ${quote(inner)} ${log}`;
    spawnSync('sh', ['-c', line], { env, timeout: 15_000 });
    const recorded = readFileSync(log);
    const start = recorded.indexOf('\n') + 1;
    const end = recorded.lastIndexOf('\nScript done');
    return recorded.subarray(start, end < 0 ? recorded.length : end);
  }

  function ours(bytes: Buffer): string[] {
    const emulator = new Emulator(size.cols, size.rows, 1000);
    emulator.feed(bytes);
    return visibleLines(toSnapshot(emulator.look(0), 1, []));
  }

  function tmux(bytes: Buffer): string[] {
    const [socket, file] = [join(folder, 'tmux'), join(folder, 'bytes')];
    writeFileSync(file, bytes);
    const run = (...args: string[]): string =>
      execFileSync('tmux', ['-S', socket, '-f', '/dev/null', ...args], {
        env: { ...process.env, LC_ALL: 'C.UTF-8' },
      }).toString();
    const shown = `stty raw -echo; cat ${file}; tmux -S ${socket} wait-for -S shown; sleep 600`;
    run('new-session', '-d', '-x', String(size.cols), '-y', String(size.rows + 1), shown);
    run('set', '-g', 'status', 'off');
    try {
      run('wait-for', 'shown');
      run('resize-window', '-x', String(size.cols), '-y', String(size.rows));
      return lines(run('capture-pane', '-p'));
    } finally {
      run('kill-server');
    }
  }

  function libvterm(bytes: Buffer): string[] {
    const [file, script, out] = ['bytes', 'look.vim', 'lines'].map((name) =>
      join(folder, name),
    ) as [string, string, string];
    writeFileSync(file, bytes);
    writeFileSync(
      script,
      [
        'set encoding=utf-8',
        `let b = term_start(['sh', '-c', 'stty raw -echo; cat ${file}; sleep 4'], {'term_rows': ${size.rows}, 'term_cols': ${size.cols}, 'hidden': 1})`,
        'call term_wait(b, 300)',
        // It takes the bytes in while it sleeps, and works them off when it is waited for.
        'sleep 1500m',
        'call term_wait(b, 300)',
        'redraw',
        'let shown = []',
        `for n in range(1, ${size.rows})`,
        '  call add(shown, term_getline(b, n))',
        'endfor',
        `call writefile(shown, '${out}')`,
        'qa!',
      ].join('\n'),
    );
    const env = { ...process.env, TERM: 'xterm', LC_ALL: 'C.UTF-8' };
    spawnSync('script', ['-q', '-c', `vim -u NONE -N -S ${script}`, '/dev/null'], {
      env,
      timeout: 15_000,
      input: '',
    });
    return lines(readFileSync(out, 'utf8'));
  }

  function lines(text: string): string[] {
    const all = text.split('\n').map((line) => line.trimEnd());
    return Array.from({ length: size.rows }, (_, n) => all[n] ?? '');
  }

  test.each(Object.entries(sessions))('[SC24] %s', (name, [command, keys]) => {
    const bytes = bytesOf(command, keys);
    expect(bytes.length).toBeGreaterThan(20);
    const seen = ours(bytes).map((line) => line.trimEnd());
    const peers = [
      ...(has('tmux', '-V') ? [tmux(bytes)] : []),
      ...(has('vim', '--version') ? [libvterm(bytes)] : []),
    ];
    for (const shown of peers) expect(shown).toEqual(seen);
    if (recorded && peers.length === 2) keep(name, bytes, seen);
  });

  function keep(name: string, bytes: Buffer, shown: readonly string[]): void {
    const path = join(recordings, name.replaceAll(/\W+/g, '-'));
    writeFileSync(`${path}.tty`, bytes);
    writeFileSync(`${path}.txt`, `${shown.join('\n')}\n`);
  }

  test.skipIf(!has('asciinema', '--version'))(
    '[SC24] asciinema reads and converts our casts',
    async () => {
      const tape = new Tape(['hello ', { cols: 100, rows: 30 }, '\x1b[31mworld\r\n']);
      const file = join(folder, 'a.cast');
      let text = '';
      for await (const part of asciicast(tape, { version: 2, size })) text += part;
      writeFileSync(file, text);
      // It wants a terminal of its own to print on.
      const shown = execFileSync('script', ['-qec', `asciinema cat ${quote(file)}`, '/dev/null']);
      expect(shown.toString()).toBe('hello \x1b[31mworld\r\n');
    },
  );
});

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
