// Waited runs in every shell and program that may have the terminal, however it was started. Shells that are not
// installed are skipped.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { HostApi } from '../../src/protocol/host-api.ts';
import type { Params } from '../../src/protocol/operations.ts';
import type { RunResult } from '../../src/protocol/run.ts';
import { runOutput } from '../../src/terminals/run-output.ts';
import {
  inProcess,
  onCleanup,
  OWNER,
  outputText,
  temporaryFolder,
  waitFor,
} from '../support/hosts.ts';
import { sized } from '../support/slow.ts';

const LIMIT_MS = 60_000;
const isRoot = process.getuid?.() === 0;

const found = new Map<string, boolean>();

function isThere(...programs: string[]): boolean {
  return programs.every((name) => {
    if (!found.has(name)) found.set(name, spawnSync('which', [name]).status === 0);
    return found.get(name);
  });
}

class Opened {
  readonly api: HostApi;
  readonly id: string;
  readonly folder: string;

  constructor(api: HostApi, id: string, folder: string) {
    this.api = api;
    this.id = id;
    this.folder = folder;
  }

  run(command: string, more: Partial<Params<'run'>> = {}): Promise<RunResult> {
    return this.api.run(OWNER, { id: this.id, command, timeoutMs: LIMIT_MS, ...more });
  }

  async type(text: string): Promise<void> {
    await this.api.write(OWNER, { id: this.id, data: Buffer.from(text), as: 'text' });
  }

  /** What it printed itself; what cannot be distinguished from a prompt says so. */
  async printedBy(command: string): Promise<string> {
    const result = await this.run(command);
    const { output } = (await runOutput(this.api, OWNER, this.id, result)) ?? {};
    return result.outputMixed ? `mixed: ${output}` : (output ?? 'unknown');
  }

  /** Completed, and with which status. */
  async status(command: string): Promise<number | undefined | 'open'> {
    const { completed, exitCode } = await this.run(command);
    return completed ? exitCode : 'open';
  }
}

async function open(line: string, cols = 100): Promise<Opened> {
  const folder = temporaryFolder();
  const api = await inProcess();
  const { process: started } = await api.start(OWNER, {
    argv: /'/.test(line)
      ? [...line.slice(0, line.indexOf("'")).trim().split(' '), between(line)]
      : line.split(' '),
    streams: 'pty',
    marks: true,
    cwd: folder,
    // fish writes into its home when it ends.
    env: { HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder, SHELL: '/bin/bash' },
    size: { cols, rows: 30 },
  });
  const opened = new Opened(api, started.id, folder);
  onCleanup(async () => {
    await api.signal(OWNER, { id: started.id, signal: 'KILL' }).catch(() => undefined);
    await api.wait(OWNER, { waits: [{ id: started.id, for: [{ kind: 'settled' }] }] });
  });
  return opened;
}

function between(line: string): string {
  return line.slice(line.indexOf("'") + 1, line.lastIndexOf("'"));
}

/** What a slow shell, or one with another prompt each time, shows beside the output is reported as such. */
const OWN_OR_MIXED = /^(?:more\n)?said\n$|^mixed: [^]*said\n/;

interface WayIn {
  readonly start: string;
  readonly needs?: string;
  readonly type?: string;
  readonly run?: string;
  readonly noWait?: string;
  readonly root?: true;
}

const started: WayIn[] = [
  'bash|bash -l|bash --norc|bash --rcfile /dev/null|bash --posix',
  "bash -c 'exec bash'|env -i HOME=/nonexistent bash",
  'sh|sh -l|dash|zsh|zsh -f|fish|fish --no-config|mksh|ksh|tcsh|busybox sh',
  'bash -i|/bin/bash|bash --login|bash -il|bash --noprofile --norc|bash --norc -i|bash -o vi|env bash',
  "nice bash|bash -lc 'exec bash --norc'|env A=1 bash --norc|sh -i|dash -i|zsh -l|fish -l",
]
  .flatMap((line) => line.split('|'))
  .map((start) => ({ start, needs: start.split(' ', 1)[0] ?? '' }));
// None with the home of whoever runs the tests: its start-up files may take a lock that a killed shell leaves behind.
const users: WayIn[] = [
  'su -p',
  'su - nobody -s /bin/bash',
  'su nobody -s /bin/bash',
  'sudo --preserve-env=HOME -s',
].map((start) => ({
  start,
  needs: start.split(' ')[0] ?? '',
  root: true,
}));
const nested: WayIn[] = [
  { start: 'script -q /dev/null', needs: 'script' },
  ...['bash', 'bash --norc', 'sh', 'exec bash --norc'].map((type) => ({ start: 'bash', type })),
  { start: 'bash', type: 'zsh -f', needs: 'zsh' },
  { start: 'bash', type: 'exec zsh -f', needs: 'zsh' },
  { start: 'bash', type: 'fish', needs: 'fish' },
  { start: 'bash', type: 'tcsh', needs: 'tcsh' },
  { start: 'bash', type: 'su -p', needs: 'su', root: true },
  { start: 'bash', type: 'script -q /dev/null', needs: 'script' },
  { start: 'bash', noWait: 'bash' },
  { start: 'bash', noWait: 'script -q /dev/null', needs: 'script' },
  { start: 'bash', run: 'bash' },
  { start: 'bash', run: 'script -q /dev/null', needs: 'script' },
  { start: 'bash', run: 'exec bash --norc' },
  { start: 'bash --norc', run: 'bash' },
  { start: 'bash --norc', run: 'fish', needs: 'fish' },
  { start: 'sh -l', run: 'zsh -f', needs: 'zsh' },
];

function nameOf({ start, type, run, noWait }: WayIn): string {
  const then = type ?? run ?? noWait;
  const how = type ? 'typed' : run ? 'run' : 'run without a wait';
  return then === undefined ? start : `${start}, in it "${then}" ${how}`;
}

function cannot({ needs, root }: WayIn): boolean {
  return (needs !== undefined && !isThere(needs)) || (root === true && !isRoot);
}

describe('a waited run', () => {
  for (const way of [...started, ...users, ...nested])
    it.skipIf(cannot(way))(`[TM97] ends with its status in ${nameOf(way)}`, async () => {
      const terminal = await open(way.start);
      if (way.type !== undefined) await terminal.type(`${way.type}\r`);
      if (way.noWait !== undefined) await terminal.run(way.noWait, { wait: false });
      if (way.run !== undefined) {
        const entered = await terminal.run(way.run);
        expect(entered, '[TM98]').toMatchObject({ completed: true, entered: expect.any(String) });
        expect(entered).not.toHaveProperty('exitCode');
      }
      expect(await terminal.status('true')).toBe(0);
      expect(await terminal.status('sh -c "exit 42"')).toBe(42);
      // What a slow shell or one with another prompt each time shows beside it is reported as such.
      expect(await terminal.printedBy('echo more; echo said'), '[TM132]').toMatch(OWN_OR_MIXED);
      const text = await outputText(terminal.api, terminal.id);
      expect(text).toContain('said');
      expect(text).not.toMatch(/\x1b_hf|\x1b\]133;/); // oxlint-disable-line no-control-regex
    });

  it.each(['python3', 'node', 'cat'])(
    '[TM13] in %s, which is no shell, returns as unknown',
    async (program) => {
      if (!isThere(program)) return;
      const terminal = await open(program);
      expect(await terminal.run('1')).toMatchObject({
        typed: true,
        completed: false,
        timedOut: false,
        completion: 'unknown',
      });
    },
  );

  it.each(
    [
      'bash --norc',
      'env -i bash --norc',
      'env TERM=dumb bash --norc',
      'zsh -f',
      'fish --no-config',
      'mksh',
      'ksh',
      'tcsh',
      'busybox sh',
    ].map((start) => ({ start, cols: 80 })),
  )('[TM44] leaves nothing of its sentinel in $start of $cols columns', async ({ start, cols }) => {
    if (!isThere(start.split(' ', 1)[0] ?? '')) return;
    const terminal = await open(start, cols);
    expect(await terminal.printedBy('echo said'), '[TM132]').toMatch(OWN_OR_MIXED);
    expect(await outputText(terminal.api, terminal.id)).not.toMatch(/printf|033|exit \$s/);
  });

  it('[TM100] is not typed while another program reads, and says which', async () => {
    const terminal = await open('bash');
    await terminal.status('true');
    await terminal.type('echo be""gun; cat\r');
    await waitFor(terminal.api, terminal.id, { kind: 'text', text: 'begun' });
    const result = await terminal.run('echo never', { timeoutMs: 1000 });
    expect(result).toMatchObject({ seq: 0, typed: false, completed: false, timedOut: true });
    expect(['cat', 'bash']).toContain(result.busyWith);
    await terminal.type('\x04');
    expect(await terminal.status('true')).toBe(0);
    expect(await outputText(terminal.api, terminal.id)).not.toContain('never');
  });

  it.skipIf(!isThere('tmux'))(
    '[TM100] in tmux, which has terminals of its own, is not typed; the next one after it works',
    async () => {
      const terminal = await open('bash');
      expect(await terminal.status('true')).toBe(0);
      const socket = join(terminal.folder, 'tmux');
      const entered = terminal.run(`tmux -f /dev/null -S ${socket} new-session`, { run: 'tmux' });
      await waitFor(terminal.api, terminal.id, { kind: 'text', text: '0:bash' });
      const inside = await terminal.run('echo never', { timeoutMs: 1000 });
      expect(inside).toMatchObject({ typed: false, completed: false, timedOut: true });
      expect(inside.busyWith).toContain('tmux');
      spawnSync('tmux', ['-S', socket, 'kill-server']);
      expect(await entered).toMatchObject({ completed: true });
      expect(await terminal.status('sh -c "exit 3"')).toBe(3);
      const alone = await open(`tmux -f /dev/null -S ${socket} new-session`);
      await waitFor(alone.api, alone.id, { kind: 'text', text: '0:bash' });
      const said = await alone.run('echo said');
      expect(said).toMatchObject({ completed: false, timedOut: false, completion: 'unknown' });
      spawnSync('tmux', ['-S', socket, 'kill-server']);
    },
  );

  it.skipIf(!isThere('python3'))(
    '[TM100] is not typed in a python that a shell has started; the shell works again behind it',
    async () => {
      const terminal = await open('bash');
      await terminal.type("python3 -q -c '' && python3 -q\r");
      await waitFor(terminal.api, terminal.id, { kind: 'text', text: '>>>' });
      const inside = await terminal.run('echo never', { timeoutMs: 1000 });
      expect(inside).toMatchObject({ typed: false, completed: false, timedOut: true });
      expect(inside.busyWith).toContain('python');
      await terminal.type('raise SystemExit(4)\r');
      expect(await terminal.status('sh -c "exit 3"')).toBe(3);
      expect(await outputText(terminal.api, terminal.id)).not.toContain('never');
    },
  );

  it.each(['bash', 'bash --norc'])(
    '[TM99] leaves its input to the command, in %s',
    async (start) => {
      const terminal = await open(start);
      const read = terminal.run('echo re""ady; read x; test "$x" = mine');
      await terminal.api.wait(OWNER, {
        waits: [{ id: terminal.id, for: [{ kind: 'text', text: 'ready' }] }],
      });
      await terminal.type('mine\r');
      expect(await read).toMatchObject({ completed: true, exitCode: 0 });
    },
  );
});

interface Kind extends WayIn {
  /** What it says to a "!" that means nothing. */
  readonly bang?: 'refuses';
  /** It keeps a wrong line in its editor. */
  readonly keeps?: true;
}

const kinds: Kind[] = [
  { start: 'bash' },
  { start: 'sh' },
  { start: 'zsh', needs: 'zsh' },
  { start: 'fish', needs: 'fish', keeps: true },
  { start: 'bash --norc', bang: 'refuses' },
  { start: 'zsh -f', needs: 'zsh', bang: 'refuses' },
  { start: 'fish --no-config', needs: 'fish', keeps: true },
  { start: 'mksh', needs: 'mksh' },
  { start: 'ksh', needs: 'ksh' },
  { start: 'tcsh', needs: 'tcsh', bang: 'refuses' },
  { start: 'busybox sh', needs: 'busybox' },
  { start: 'su -p', needs: 'su', root: true, bang: 'refuses' },
  { start: 'script -q /dev/null', needs: 'script', bang: 'refuses' },
  { start: 'bash', type: 'bash --norc', bang: 'refuses' },
];

describe('every kind of shell', () => {
  for (const kind of kinds)
    it.skipIf(cannot(kind))(
      `[TM97] ${nameOf(kind)}: status, late end, leftover, !, mistakes, end`,
      async () => {
        const terminal = await open(kind.start);
        if (kind.type !== undefined) await terminal.type(`${kind.type}\r`);
        expect(await terminal.status('sh -c "exit 7"')).toBe(7);

        const fifo = join(terminal.folder, 'gate');
        spawnSync('sh', ['-c', `mkfifo -m 666 ${fifo}`]);
        const command = `echo be""gun; cat ${fifo}`;
        const late = terminal.run(command, { run: 'late' });
        // It has been typed and goes on: before that its time being over would take it back.
        await waitFor(terminal.api, terminal.id, { kind: 'text', text: 'begun' });
        expect(await terminal.run(command, { run: 'late', timeoutMs: 1 })).toMatchObject({
          typed: true,
          completed: false,
          timedOut: true,
        });
        writeFileSync(fifo, 'opened\n');
        const waited = { id: terminal.id, run: 'late', timeoutMs: LIMIT_MS };
        for (const reported of [await terminal.api.runWait(OWNER, waited), await late])
          expect(reported, '[TM5]').toMatchObject({ completed: true, exitCode: 0 });

        await terminal.type('rm -rf /nowhere-at-all ');
        const cleared = await terminal.run('sh -c "exit 5"');
        expect(cleared, '[TM101]').toMatchObject({ completed: true, exitCode: 5, cleared: true });

        const bang = await terminal.run('echo "Wow!amazing"');
        expect(bang, '[TM102]').toMatchObject({ completed: true });
        expect([bang.executed, bang.exitCode]).toEqual(
          kind.bang === 'refuses' ? [false, bang.exitCode] : [undefined, 0],
        );
        expect(await terminal.status('sh -c "exit 6"')).toBe(6);

        const wrong = await terminal.run('echo )');
        if (kind.keeps)
          expect(wrong, '[TM103]').toMatchObject({ completed: false, incomplete: true });
        else expect(wrong, '[TM102]').toMatchObject({ completed: true });
        expect(wrong.exitCode).not.toBe(0);
        expect(await terminal.status('sh -c "exit 9"')).toBe(9);

        const last = await terminal.run('exit');
        expect(last, '[TM7]').toMatchObject(
          kind.type === undefined ? { ended: true, completed: false } : { entered: 'bash' },
        );
      },
    );
});

const habits: readonly (readonly [shell: string, ...commands: string[]])[] = [
  ['bash', "PS1='new> '"],
  ['bash', 'PS1='],
  ['bash', 'PROMPT_COMMAND='],
  ['bash', 'unset PROMPT_COMMAND'],
  ['bash', "PROMPT_COMMAND='echo again'"],
  ['bash', 'f() { PS1="f> "; }; PROMPT_COMMAND=f'],
  ['bash', "unset PROMPT_COMMAND; PS1='bare> '"],
  ['bash', "PS0='begins '"],
  ['bash', "trap 'true' DEBUG"],
  ['bash', 'export PROMPT_COMMAND=true'],
  ['bash', `echo "PS1='own> '" > ~/.bashrc; . ~/.bashrc`],
  ['bash', 'tput smcup; tput rmcup'],
  ['bash', 'seq 1 200000'],
  ['bash', 'set -u'],
  ['bash', 'set -x'],
  ['bash', 'set -o posix'],
  ['bash', 'stty -echo'],
  ['bash', 'clear; reset'],
  ['bash', 'set -H'],
  ['bash', '(echo later) &'],
  ['bash', 'echo x # comment'],
  ['bash', 'cat <<END\nhere\nEND'],
  ['bash', 'true;'],
  ['bash', `echo ${'x'.repeat(8000)}`],
  ['bash', Array.from({ length: 100 }, (_, line) => `echo ${line}`).join('\n')],
  ['bash', 'echo a\tb'],
  ['bash', 'echo äöü€😀'],
  ['zsh', 'precmd_functions=()'],
  ['zsh', 'precmd() { PS1="own> " }'],
  ['zsh', "PS1='new> '"],
  ['fish', 'function fish_prompt; echo -n "own> "; end'],
  ['sh', "PS1='new> '"],
];

describe('habits', () => {
  for (const [shell, command = ''] of habits)
    it.skipIf(!isThere(shell))(
      `[TM104] runs work after ${JSON.stringify(command.slice(0, 40))} in ${shell}`,
      async () => {
        const terminal = await open(shell);
        expect(await terminal.status(command)).toBe(0);
        expect(await terminal.status('sh -c "exit 3"')).toBe(3);
        expect(await terminal.status('true')).toBe(0);
      },
    );

  it.each(['bash', 'bash --norc', 'zsh -f'])(
    '[TM104] a run that ends the shell of %s is told with its session, and set -e ends it at the next failure',
    async (start) => {
      if (!isThere(start.split(' ', 1)[0] ?? '')) return;
      for (const last of ['exec true', 'kill -9 $$', 'exit 4']) {
        const terminal = await open(start);
        expect(await terminal.run(last)).toMatchObject({ ended: true, completed: false });
      }
      const strict = await open(start);
      expect(await strict.status('set -e')).toBe(0);
      expect(await strict.status('true')).toBe(0);
      expect(await strict.run('false')).toMatchObject({ ended: true, completed: false });
    },
  );

  it.each(['echo "open', 'echo a\\', 'echo a |'])(
    '[TM103] %j returns at once, and the next run works',
    async (command) => {
      const terminal = await open('bash');
      expect(await terminal.run(command)).toMatchObject({ completed: false, incomplete: true });
      expect(await terminal.status('sh -c "exit 3"')).toBe(3);
    },
  );

  it.each(['bash', 'sh', 'zsh'])(
    '[TM120] in %s an unclosed command is cancelled again and again, however quick the next run is',
    async (shell) => {
      if (!isThere(shell)) return;
      const terminal = await open(shell);
      for (let turn = 0; turn < sized(4, 10); turn += 1) {
        expect(await terminal.run('echo "open')).toMatchObject({ incomplete: true });
        expect(await terminal.status('sh -c "exit 3"')).toBe(3);
      }
    },
  );

  it('[TM102] a "!" that bash expands says that nothing was executed', async () => {
    const terminal = await open('bash');
    expect(await terminal.status('set -H')).toBe(0);
    const refused = await terminal.run('echo "Wow!amazing"');
    expect(refused).toMatchObject({ completed: true, executed: false });
    expect(refused).not.toHaveProperty('exitCode');
    expect(await terminal.run('echo )')).toMatchObject({ executed: false, exitCode: 2 });
  });
});

interface ByHand {
  readonly name: string;
  readonly needs?: string;
  /** What is run; FILE stands for a file with the line "first line". */
  readonly command: string;
  /** What is on the terminal before the keys are typed. */
  readonly shows: string;
  readonly keys: string;
  readonly status: number;
}

/** What a person does while a run goes on. The program itself has printed `shows`, so it has the terminal by then. */
const byHand: readonly ByHand[] = [
  {
    name: 'Ctrl-C interrupts it',
    command: `sh -c 'echo be""gun; exec sleep 600'`,
    shows: 'begun',
    keys: '\x03',
    status: 130,
  },
  {
    name: 'Ctrl-Z stops it',
    command: `sh -c 'echo be""gun; exec sleep 600'`,
    shows: 'begun',
    keys: '\x1a',
    status: 148,
  },
  {
    name: 'a password is typed',
    command: `sh -c 'stty -echo; printf "Pass""word: "; read p; stty echo; test "$p" = hidden-word'`,
    shows: 'Password: ',
    keys: 'hidden-word\r',
    status: 0,
  },
  {
    name: 'less is quit',
    needs: 'less',
    command: 'less FILE',
    shows: 'first line',
    keys: 'q',
    status: 0,
  },
  {
    name: 'vim is quit',
    needs: 'vim',
    command: 'vim -u NONE -n FILE',
    shows: 'first line',
    keys: '\x1b:cquit 7\r',
    status: 7,
  },
];

describe('a person', () => {
  for (const start of ['bash', 'sh', 'zsh -f', 'bash --norc', 'zsh', 'mksh'].slice(0, sized(3, 6)))
    for (const { name, needs, command, shows, keys, status } of byHand)
      it.skipIf(!isThere(start.split(' ', 1)[0] ?? '', ...(needs === undefined ? [] : [needs])))(
        `[TM135] ${name} during a run in ${start}: the run and the next one have their status`,
        async () => {
          const terminal = await open(start);
          const file = join(terminal.folder, 'file');
          writeFileSync(file, 'first line\n'.repeat(100));
          expect(await terminal.status('true')).toBe(0);
          const running = terminal.run(command.replace('FILE', file));
          await waitFor(terminal.api, terminal.id, { kind: 'text', text: shows });
          await terminal.type(keys);
          // mksh itself gives 0 for a job that was stopped.
          const exitCode = start === 'mksh' && status === 148 ? 0 : status;
          expect(await running).toMatchObject({ completed: true, exitCode });
          expect(await terminal.status('sh -c "exit 3"')).toBe(3);
          expect(await outputText(terminal.api, terminal.id)).not.toContain('hidden-word\r');
        },
      );

  it.each(['bash', 'bash --norc', 'fish'])(
    '[TM135] types two runs at once in %s: each has its own status',
    async (start) => {
      if (!isThere(start.split(' ', 1)[0] ?? '')) return;
      const terminal = await open(start);
      const both = ['sh -c "exit 3"', 'sh -c "exit 4"'].map((command) => terminal.status(command));
      expect(await Promise.all(both)).toEqual([3, 4]);
    },
  );

  it.skipIf(!isThere('python3')).each(['bash', 'bash --norc', 'zsh -f', 'sh'])(
    '[TM135] enters and leaves a virtual environment of Python in %s',
    async (start) => {
      if (!isThere(start.split(' ', 1)[0] ?? '')) return;
      const terminal = await open(start);
      const venv = join(terminal.folder, 'venv');
      const made = spawnSync('python3', ['-m', 'venv', '--without-pip', '--symlinks', venv]);
      expect([made.status, made.stderr.toString()]).toEqual([0, expect.any(String)]);
      expect(await terminal.status(`. ${venv}/bin/activate`)).toBe(0);
      expect(await terminal.status(`test "$VIRTUAL_ENV" = ${venv}`)).toBe(0);
      expect(await terminal.status('sh -c "exit 3"')).toBe(3);
      expect(await terminal.status('deactivate')).toBe(0);
      expect(await terminal.status('sh -c "exit 4"')).toBe(4);
    },
  );
});
