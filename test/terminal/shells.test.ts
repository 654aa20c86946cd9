// zsh and fish as people have them: their own files, their own way to keep a prompt on a line of its own. Skipped where
// they are not installed.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { HostApi } from '../../src/protocol/host-api.ts';
import {
  describeHosts,
  OWNER,
  outputText,
  startProcess,
  temporaryFolder,
  waitFor,
} from '../support/hosts.ts';

interface Shell {
  readonly path: string;
  /** What its user has, by path in the home. */
  readonly files: Readonly<Record<string, string>>;
  readonly history: string;
  readonly env?: Readonly<Record<string, string>>;
}

const shells: Readonly<Record<string, Shell>> = {
  zsh: {
    path: '/usr/bin/zsh',
    files: {
      '.zshenv': 'export FROM_ENV=env\n',
      '.zshrc':
        'MINE=here\nsetopt prompt_subst\nPROMPT="[%?] "\nprecmd() { PROMPT="<$MINE %?> "; print -n "" }\n',
    },
    history: 'fc -ln 1',
  },
  'zsh with ZDOTDIR': {
    path: '/usr/bin/zsh',
    files: { 'dots/.zshenv': 'export FROM_ENV=env\n', 'dots/.zshrc': 'MINE=here\n' },
    history: 'fc -ln 1',
    env: { ZDOTDIR: 'dots', PROMPT_EOL_MARK: '' },
  },
  fish: {
    path: '/usr/bin/fish',
    files: {
      '.config/fish/config.fish':
        'set -gx FROM_ENV env\nset -g MINE here\nfunction fish_prompt\n  echo -n "<$MINE $status> "\nend\n',
    },
    history: 'history --reverse | cat',
  },
};

describeHosts((make) => {
  for (const [name, shell] of Object.entries(shells)) {
    describe.skipIf(!existsSync(shell.path))(`in ${name}`, () => {
      async function open(): Promise<{ api: HostApi; id: string; run: Run }> {
        const api = await make();
        const home = temporaryFolder();
        for (const [path, text] of Object.entries(shell.files)) {
          mkdirSync(dirname(join(home, path)), { recursive: true });
          writeFileSync(join(home, path), text);
        }
        const { ZDOTDIR, ...env } = shell.env ?? {};
        const id = await startProcess(api, {
          argv: [shell.path],
          streams: 'pty',
          marks: true,
          cwd: home,
          env: { HOME: home, ...env, ...(ZDOTDIR && { ZDOTDIR: join(home, ZDOTDIR) }) },
          size: { cols: 100, rows: 30 },
        });
        return { api, id, run: runner(api, id) };
      }

      it("[TM18] the user's own files are read, and its own prompt still marks", async () => {
        const { run } = await open();
        expect(await run('echo $FROM_ENV $MINE')).toEqual(['env here\r\n', 0]);
        expect(await run('sh -c "exit 5"')).toEqual(['', 5]);
        expect(await run('true')).toEqual(['', 0]);
      });

      it('[TM17] the history knows only what was typed, and no program inherits a variable of ours', async () => {
        const { run } = await open();
        await run('echo one');
        await run('false');
        const [history] = await run(shell.history);
        const lines = history
          .trim()
          .split('\r\n')
          .map((line) => line.trim());
        expect(lines.slice(0, 2)).toEqual(['echo one', 'false']);
        expect(lines.slice(2).every((line) => line === shell.history)).toBe(true);
        const [inherited] = await run('env | grep -ci -e holdfast_marks -e "133;"');
        expect(inherited).toBe('0\r\n');
      });

      it('[TM42] what the shell adds so that its prompt gets a line of its own is no output of the command', async () => {
        const { api, id, run } = await open();
        expect(await run('printf partial')).toEqual(['partial', 0]);
        expect(await run('printf "\\rbar"')).toEqual(['\rbar', 0]);
        expect(await run('echo whole')).toEqual(['whole\r\n', 0]);
        expect(await run('printf "a\\n\\nb"; sh -c "exit 3"')).toEqual(['a\r\n\r\nb', 3]);
        await api.run(OWNER, { id, command: 'exit', timeoutMs: 60_000 });
        await waitFor(api, id, { kind: 'closed' });
        expect(await outputText(api, id)).not.toContain('\x1b]133;');
      });
    });
  }
});

describeHosts((make) => {
  for (const path of ['/usr/bin/zsh', '/usr/bin/fish'])
    describe.skipIf(!existsSync(path))(`in ${path} without marks`, () => {
      it('[TM96] a sentinel tells the end and the status, keeps it, and is seen nowhere', async () => {
        const api = await make();
        const home = temporaryFolder();
        // Without it zsh asks a user other than root what to write there.
        writeFileSync(join(home, '.zshrc'), '');
        const id = await startProcess(api, {
          argv: [path],
          streams: 'pty',
          cwd: home,
          env: { HOME: home },
          size: { cols: 120, rows: 30 },
        });
        const sentinel = async (command: string): Promise<unknown> => {
          const { completed, completion, exitCode } = await api.run(OWNER, {
            id,
            command,
            completion: 'sentinel',
            timeoutMs: 60_000,
          });
          return [completed, completion, exitCode];
        };
        expect(await sentinel('echo before; sh -c "exit 3"')).toEqual([true, 'sentinel', 3]);
        expect(await sentinel('echo kept=$status')).toEqual([true, 'sentinel', 0]);
        expect(await sentinel('true')).toEqual([true, 'sentinel', 0]);
        await api.run(OWNER, { id, command: 'exit', completion: 'none', timeoutMs: 60_000 });
        await waitFor(api, id, { kind: 'closed' });
        const text = await outputText(api, id);
        expect(text).toContain('kept=3');
        expect(text).not.toContain('\x1b_');
        expect(text).not.toContain('137');
      });
    });
});

type Run = (command: string) => Promise<[output: string, exitCode: number | undefined]>;

function runner(api: HostApi, id: string): Run {
  return async (command) => {
    const result = await api.run(OWNER, { id, command, timeoutMs: 60_000 });
    expect(result).toMatchObject({ completed: true, completion: 'marks' });
    const { outputFrom: offset = 0, outputTo = 0, exitCode } = result;
    if (offset === outputTo) return ['', exitCode];
    const { bytes } = await api.range(OWNER, { id, offset, maxBytes: outputTo - offset });
    return [bytes.toString(), exitCode];
  };
}
