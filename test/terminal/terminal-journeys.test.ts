// Terminals with real shells, over a host in this program and over a keeper: runs and how their end is known, what is
// typed, who gets a signal.
import { existsSync } from 'node:fs';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { HostApi } from '../../src/protocol/host-api.ts';
import type { RunResult } from '../../src/protocol/run.ts';
import {
  describeHosts,
  failure,
  OWNER,
  outputText,
  pages,
  startProcess,
  temporaryFolder,
  waitFor,
} from '../support/hosts.ts';

const shells = [
  ['bash', '/bin/bash'],
  ['dash', '/bin/dash'],
  ['sh', '/bin/sh'],
  ['zsh', '/usr/bin/zsh'],
  ['fish', '/usr/bin/fish'],
] as const;
const here = shells.filter(([, path]) => existsSync(path));

async function shell(
  api: HostApi,
  path = '/bin/bash',
  env: Record<string, string> = {},
): Promise<string> {
  const home = temporaryFolder();
  return startProcess(api, {
    argv: [path],
    streams: 'pty',
    marks: true,
    cwd: home,
    env: { HOME: home, PS1: '$ ', ...env },
    size: { cols: 100, rows: 30 },
  });
}

function run(api: HostApi, id: string, command: string, more: object = {}): Promise<RunResult> {
  return api.run(OWNER, { id, command, timeoutMs: 60_000, ...more });
}

async function output(
  api: HostApi,
  id: string,
  { outputFrom = 0, outputTo = 0 }: RunResult,
): Promise<string> {
  if (outputTo === outputFrom) return '';
  const range = await api.range(OWNER, { id, offset: outputFrom, maxBytes: outputTo - outputFrom });
  return range.bytes.toString();
}

/** Resolves when the shell waits for a command. */
const settled = (api: HostApi, id: string): Promise<RunResult> => run(api, id, 'true');

describeHosts((make) => {
  for (const [kind, path] of here) {
    it(`[TM15] ${kind}: exit status, directory, own output, several lines; $? and stdin untouched`, async () => {
      const api = await make();
      const id = await shell(api, path);
      expect((await api.get(OWNER, { id })).terminal).toEqual({
        term: 'xterm-256color',
        queries: 'keeper',
        marks: kind,
      });
      const first = await run(api, id, 'echo hi; false');
      expect(first).toMatchObject({
        completed: true,
        completion: 'marks',
        exitCode: 1,
        timedOut: false,
      });
      expect(await output(api, id, first)).toBe('hi\r\n');
      const status = await run(api, id, kind === 'fish' ? 'echo s=$status' : 'echo s=$?');
      expect(await output(api, id, status)).toBe('s=1\r\n');
      expect(await run(api, id, 'cd /usr')).toMatchObject({ cwd: '/usr', exitCode: 0 });
      const lines = await run(api, id, 'echo one\necho two\n');
      expect(await output(api, id, lines)).toBe('one\r\ntwo\r\n');
      const read = run(api, id, 'echo re""ady; read x; echo "got:[$x]"');
      await waitFor(api, id, { kind: 'text', text: 'ready' });
      await api.write(OWNER, { id, data: Buffer.from('typed\n'), writeId: 'w' });
      expect(await output(api, id, await read)).toContain('got:[typed]');
      expect(await run(api, id, 'exit 42')).toMatchObject({ completed: false, ended: true });
      const { process } = await waitFor(api, id, { kind: 'closed' });
      expect(process.outcome).toEqual({ kind: 'exit', code: 42 });
    });
  }

  it('[TM16] (19) no mark, nonce or sentinel is ever in the output', async () => {
    const api = await make();
    const id = await shell(api);
    await run(api, id, 'echo a');
    await run(api, id, 'printf "\\033]133;D;0\\007foreign"');
    await run(api, id, 'echo by-sentinel', { completion: 'sentinel' });
    await run(api, id, 'stty -echo; echo quiet', { completion: 'sentinel' });
    await run(api, id, 'exit');
    await waitFor(api, id, { kind: 'closed' });
    const text = await outputText(api, id);
    // What a program prints in our form, without the nonce, is its own.
    expect(
      text
        .split('\x1b]133;')
        .slice(1)
        .map((rest) => rest.split('\x07', 1)[0]),
    ).toEqual(['D;0']);
    expect(text).not.toContain('\x1b_');
    expect(text).not.toContain("printf '\\033\\137");
    expect(text).toContain('by-sentinel');
  });

  it('[TM17] the history knows only what was typed, and the shell has no variable of ours to hand on', async () => {
    const api = await make();
    const id = await shell(api);
    await run(api, id, 'echo one');
    const history = await run(api, id, 'history');
    expect((await output(api, id, history)).replace(/\r/g, '')).toBe(
      '    1  echo one\n    2  history\n',
    );
    const env = await run(
      api,
      id,
      'env | grep -c -i holdfast_marks; env | grep HOLDFAST_ | grep -v HOLDFAST_PROCESS',
    );
    expect(await output(api, id, env)).toBe('0\r\n');
  });

  it("[TM18] the user's own files are read, and a prompt made anew for every command still marks", async () => {
    const api = await make();
    const home = temporaryFolder();
    writeFileSync(join(home, '.bashrc'), 'mine=here\nPROMPT_COMMAND=\'PS1="[\\$?]> "\'\n');
    const id = await startProcess(api, {
      argv: ['/bin/bash'],
      streams: 'pty',
      marks: true,
      env: { HOME: home },
    });
    const seen = await run(api, id, 'echo $mine');
    expect(await output(api, id, seen)).toBe('here\r\n');
    expect(await run(api, id, '(exit 5)')).toMatchObject({ exitCode: 5 });
    await run(api, id, "PROMPT_COMMAND='PS1=new-'");
    expect(await run(api, id, '(exit 6)')).toMatchObject({ exitCode: 6, completion: 'marks' });
    const env = await run(api, id, 'echo "$PROMPT_COMMAND"; set -u; true');
    expect(env.completed).toBe(true);
  });

  // Where characters are bytes, bash wraps its line in another way.
  it.each(['C', 'C.UTF-8'])(
    '[TM12] where no marks are made a sentinel tells the end, between the output before and behind it (%s)',
    async (locale) => {
      const api = await make();
      const id = await startProcess(api, {
        argv: ['/bin/bash', '--norc', '--noprofile'],
        streams: 'pty',
        marks: true,
        env: { PS1: '$ ', LC_ALL: locale },
        size: { cols: 40, rows: 24 },
      });
      expect((await api.get(OWNER, { id })).terminal).toEqual({
        term: 'xterm-256color',
        queries: 'keeper',
      });
      const failing = await run(api, id, 'echo before; (exit 3)', { completion: 'sentinel' });
      expect(failing).toMatchObject({ completed: true, completion: 'sentinel', exitCode: 3 });
      const [kept, both] = await Promise.all([
        run(api, id, 'echo kept=$?', { completion: 'sentinel' }),
        run(api, id, 'echo two', { completion: 'sentinel' }),
      ]);
      expect([kept.exitCode, both.exitCode]).toEqual([0, 0]);
      await run(api, id, 'exit', { completion: 'none' });
      await waitFor(api, id, { kind: 'closed' });
      const { events } = await pages(api, id);
      const notes = events.flatMap((event) => (event.kind === 'note' ? [event] : []));
      const ends = notes.filter(({ body }) => body['note'] === 'runEnd');
      expect(ends).toHaveLength(3);
      for (const end of ends) {
        const started = events.find(({ seq }) => seq === end.body['startSeq']);
        expect(started).toMatchObject({
          kind: 'note',
          body: { note: 'run', run: end.body['run'] },
        });
      }
      const text = await outputText(api, id);
      expect(text).toContain('kept=3');
      expect(text).not.toContain('\x1b_');
      expect(text).not.toContain('\\137');
    },
  );

  it('[TM13] (D8) in a program that is no shell the end of a run is unknown, and nothing is made up', async () => {
    const api = await make();
    const id = await startProcess(api, { argv: ['cat'], streams: 'pty', marks: true });
    const result = await run(api, id, 'hello');
    expect(result).toMatchObject({ completed: false, timedOut: false, completion: 'unknown' });
    expect(result.exitCode).toBeUndefined();
    while (!(await outputText(api, id)).includes('hello\r\nhello\r\n')) await nextTurn();
  });

  it('[TM5] (20) a run whose time is over goes on, its late end is recorded, and later output is whole', async () => {
    const api = await make();
    const id = await shell(api);
    await settled(api, id);
    const command = 'echo be""gun; read gate; echo "late $gate"; (exit 9)';
    const first = run(api, id, command, { run: 'slow' });
    // It has been typed: before that its time being over would take it back.
    await waitFor(api, id, { kind: 'text', text: 'begun' });
    expect(await run(api, id, command, { run: 'slow', timeoutMs: 1 })).toMatchObject({
      completed: false,
      timedOut: true,
    });
    const next = run(api, id, 'echo next');
    await api.write(OWNER, { id, data: Buffer.from('033137\n') });
    expect(await api.runWait(OWNER, { id, run: 'slow' })).toMatchObject({ exitCode: 9 });
    expect(await first).toMatchObject({ completed: true, exitCode: 9 });
    expect(await output(api, id, await next)).toBe('next\r\n');
    expect(await outputText(api, id)).toContain('late 033137');
  });

  it('[TM4] (20) many runs at once are done one after the other and none crosses another', async () => {
    const api = await make();
    const id = await shell(api);
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, index) => run(api, id, `echo r${index}; (exit ${index})`)),
    );
    expect(results.map(({ exitCode }) => exitCode)).toEqual(
      Array.from({ length: 20 }, (_, index) => index),
    );
    for (const [index, result] of results.entries())
      expect(await output(api, id, result)).toBe(`r${index}\r\n`);
  });

  it('[TM19] a signal reaches the foreground and not the shell behind it', async () => {
    const api = await make();
    const id = await shell(api);
    await settled(api, id);
    // Its own words: a shell that is about to become a program can lose an interrupt.
    const reading = run(api, id, 'tail -n +1 -f /etc/passwd');
    await waitFor(api, id, { kind: 'text', text: 'root:' });
    await api.signal(OWNER, { id, signal: 'INT', reach: 'foreground' });
    expect(await reading).toMatchObject({ completed: true, exitCode: 130 });
    expect(await run(api, id, 'echo alive')).toMatchObject({ exitCode: 0 });
  });

  it('[TM20] what is typed at a prompt is recorded, what is typed for a password is not', async () => {
    const api = await make();
    const id = await shell(api);
    await settled(api, id);
    await api.write(OWNER, { id, data: Buffer.from('echo o""pen\r'), as: 'text' });
    await waitFor(api, id, { kind: 'text', text: 'open' });
    const asked = run(api, id, `read -r -s -p 'Pass''word: ' secret; echo; echo asked`);
    await waitFor(api, id, { kind: 'text', text: 'Password: ' });
    await api.write(OWNER, {
      id,
      data: Buffer.from('hunter2\r'),
      as: 'keys',
      keys: ['h', 'Enter'],
    });
    await asked;
    const { events } = await pages(api, id);
    const inputs = events.flatMap((event) => (event.kind === 'input' ? [event.body] : []));
    expect(inputs).toEqual([
      { bytes: 12, as: 'text', data: Buffer.from('echo o""pen\r').toString('base64') },
      { bytes: 8, as: 'keys' },
    ]);
    expect(JSON.stringify(events)).not.toContain('hunter2');
  });

  it('[TM21] input, resize and mark answer the number of the event that records them', async () => {
    const api = await make();
    const id = await startProcess(api, { argv: ['cat'], streams: 'pty' });
    const typed = await api.write(OWNER, { id, data: Buffer.from('x'), as: 'text' });
    const resized = await api.resize(OWNER, { id, size: { cols: 50, rows: 20 } });
    const marked = await api.mark(OWNER, { id, label: '' });
    await api.write(OWNER, { id, eof: true });
    const { events } = await pages(api, id);
    const at = (seq: number) => events.find((event) => event.seq === seq);
    expect(at(typed.seq)).toMatchObject({ kind: 'input', body: { as: 'text' } });
    expect(at(resized.seq)).toMatchObject({ kind: 'resize', body: { cols: 50, rows: 20 } });
    expect(at(marked.seq)).toMatchObject({ kind: 'note', body: { note: 'mark', label: '' } });
  });

  it('[TM22] (5) an idle terminal ends by itself, and says why', async () => {
    const api = await make();
    const id = await startProcess(api, { argv: ['cat'], streams: 'pty', idleTimeoutMs: 150 });
    const { process } = await waitFor(api, id, { kind: 'exit' });
    expect(process.outcome).toMatchObject({ kind: 'signal', by: 'idle timeout' });
    expect(process.durationMs).toBeGreaterThanOrEqual(150);
  });

  it('[TM23] only terminals have runs and marks, and a run of an ended one is refused', async () => {
    const api = await make();
    const pipe = await startProcess(api, { command: 'true' });
    expect((await failure(run(api, pipe, 'x'))).code).toBe('not_a_terminal');
    expect((await failure(api.mark(OWNER, { id: pipe, label: 'x' }))).code).toBe('not_a_terminal');
    const id = await startProcess(api, { argv: ['true'], streams: 'pty' });
    await waitFor(api, id, { kind: 'closed' });
    expect((await failure(run(api, id, 'x'))).code).toBe('not_running');
    expect((await failure(api.mark(OWNER, { id, label: 'x' }))).code).toBe('not_running');
  });
});
