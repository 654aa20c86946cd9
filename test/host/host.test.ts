// What every host promises, in process and over a keeper.

import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { HostApi } from '../../src/protocol/host-api.ts';
import { FakeClock } from '../support/fake-clock.ts';
import {
  describeHosts,
  failure,
  gate,
  inProcess,
  OWNER,
  outputText,
  pages,
  startProcess,
  temporaryFolder,
  untilPrinted,
  waitFor,
} from '../support/hosts.ts';
import { sized } from '../support/slow.ts';

const exit = { kind: 'exit' } as const;
const closed = { kind: 'closed' } as const;
const settled = { kind: 'settled' } as const;

describeHosts((make) => {
  describe('start', () => {
    it('[H1] runs a shell command or an argument list, in its directory, and keeps every byte', async () => {
      const api = await make();
      const folder = temporaryFolder();
      const shell = await startProcess(api, { command: 'pwd; echo "a  b" >&2', cwd: folder });
      const argv = await startProcess(api, { argv: ['printf', '%s|', 'x y', '$HOME', '*'] });
      await waitFor(api, shell, closed);
      await waitFor(api, argv, closed);
      expect(await outputText(api, shell)).toBe(`${folder}\na  b\n`);
      expect(await outputText(api, argv)).toBe('x y|$HOME|*|');
    });

    it('[H2] keeps stdout and stderr apart when asked, and in one true order otherwise', async () => {
      const api = await make();
      const script = 'for i in 1 2 3 4 5; do echo out$i; echo err$i >&2; done';
      const merged = await startProcess(api, { command: script });
      const apart = await startProcess(api, { command: script, streams: 'separate' });
      await waitFor(api, merged, closed);
      await waitFor(api, apart, closed);
      expect(await outputText(api, merged)).toBe(
        [1, 2, 3, 4, 5].map((i) => `out${i}\nerr${i}\n`).join(''),
      );
      const { events } = await pages(api, apart);
      const of = (stream: string): string =>
        events
          .map((event) =>
            event.kind === 'output' && event.stream === stream ? event.data.toString() : '',
          )
          .join('');
      expect([of('stdout'), of('stderr')]).toEqual([
        'out1\nout2\nout3\nout4\nout5\n',
        'err1\nerr2\nerr3\nerr4\nerr5\n',
      ]);
    });

    it("[H3] gives the environment that the policy says, and never what is the host's own", async () => {
      const api = await make();
      const id = await startProcess(api, {
        command: 'env | sort',
        environment: {
          inherit: 'core',
          set: { KEPT: '1', SECRET_KEY: '2' },
          exclude: ['HOME'],
          only: ['KEPT', 'PATH', 'HOME'],
        },
        env: { OWN: 'mine' },
      });
      await waitFor(api, id, closed);
      const names = (await outputText(api, id))
        .trim()
        .split('\n')
        .map((line) => line.split('=')[0]);
      expect(names).toEqual(['HOLDFAST_PROCESS', 'KEPT', 'OWN', 'PATH', 'PWD']);
    });

    it('[H3] a variable that a start replaces is there once, whatever starts beside it replace', async () => {
      const api = await make();
      const replaced = [
        { HOME: '/one' },
        { PATH: '/usr/bin:/bin', LANG: 'two' },
        {},
        { HOME: '/4' },
      ];
      const shown = await Promise.all(
        Array.from({ length: 20 }, async (_, turn) => {
          const env: Record<string, string> = replaced[turn % replaced.length] ?? {};
          const id = await startProcess(api, { command: 'env', env });
          await waitFor(api, id, closed);
          const lines = (await outputText(api, id)).trim().split('\n');
          const names = lines.map((line) => line.split('=', 1)[0]);
          const own = Object.entries(env).filter(
            ([name, value]) => !lines.includes(`${name}=${value}`),
          );
          return { own, twice: names.length - new Set(names).size };
        }),
      );
      expect(shown).toEqual(shown.map(() => ({ own: [], twice: 0 })));
    });

    it("[L41] a bash that tells its statuses reads the user's own BASH_ENV, and hands that on", async () => {
      const api = await make();
      const folder = temporaryFolder();
      writeFileSync(join(folder, 'own.sh'), 'echo mine\n');
      const told = async (own: string): Promise<string> => {
        const id = await startProcess(api, {
          argv: ['bash', '-c', 'echo "$BASH_ENV"; env | grep -c HOLDFAST_BASH; false | true'],
          marks: true,
          env: { FOLDER: folder, BASH_ENV: own },
        });
        await waitFor(api, id, closed);
        return outputText(api, id);
      };
      const statuses = '\x1b]7770;pipeline=1 0\x07';
      expect(await told('$FOLDER/own.sh')).toBe(`mine\n$FOLDER/own.sh\n0\n${statuses}`);
      expect(await told('/nonexistent')).toBe(`/nonexistent\n0\n${statuses}`);
    });

    it('[API80] variables and labels may have any name that an object has anyway, and are no list', async () => {
      const api = await make();
      const texts = (value: string): Record<string, string> =>
        JSON.parse(`{"constructor":"${value}","prototype":"${value}","__proto__":"${value}"}`);
      const { process } = await api.start(OWNER, {
        command: 'env | grep -E "^(constructor|prototype|__proto__)=" | sort',
        environment: { set: texts('lower') },
        env: texts('x'),
        labels: texts('y'),
      });
      await waitFor(api, process.id, closed);
      expect(await outputText(api, process.id)).toBe('__proto__=x\nconstructor=x\nprototype=x\n');
      expect(Object.entries(process.labels ?? {})).toEqual(Object.entries(texts('y')));
      const list = ['A=1'] as unknown as Record<string, string>;
      const refused = await failure(api.start(OWNER, { command: 'true', env: list }));
      expect([refused.code, refused.message]).toEqual([
        'invalid_input',
        'start: "env": must be an object',
      ]);
      const wrong = { environment: { set: { ok: '1', 'a=b': '2' } } };
      expect((await failure(api.start(OWNER, { command: 'true', ...wrong }))).message).toBe(
        'start: "environment.set.a=b": contains "="',
      );
    });

    it('[H4] answers each impossible start with its own error and leaves nothing behind', async () => {
      const api = await make();
      const folder = temporaryFolder();
      writeFileSync(join(folder, 'plain'), 'text', { mode: 0o600 });
      const cases = [
        [{ argv: ['no-such-program'] }, 'program_not_found'],
        [{ argv: ['/no/such/program'] }, 'program_not_found'],
        // A folder of the PATH that is none, or has an impossible name, holds nothing: as a shell sees it.
        [
          { argv: ['no-such'], env: { PATH: `${join(folder, 'plain')}:/${'x'.repeat(300)}:/bin` } },
          'program_not_found',
        ],
        [{ argv: [join(folder, 'plain')] }, 'program_not_executable'],
        [{ argv: [folder] }, 'program_not_executable'],
        [{ command: 'true', cwd: join(folder, 'missing') }, 'cwd_not_found'],
        [{ command: 'true', cwd: join(folder, 'plain') }, 'cwd_not_usable'],
        [{ argv: ['echo', 'x'.repeat(3_000_000)] }, 'arguments_too_long'],
        [{ command: 'echo \0' }, 'invalid_input'],
        [{ argv: [] }, 'invalid_input'],
        [{}, 'invalid_input'],
        [{ command: 'true', argv: ['true'] }, 'invalid_input'],
        [{ command: 'true', id: '../escape' }, 'invalid_input'],
        [{ command: 'true', env: { 'A=B': 'c' } }, 'invalid_input'],
      ] as const;
      for (const [spec, code] of cases) {
        const error = await failure(api.start(OWNER, spec as never));
        expect([spec, error.code]).toEqual([spec, code]);
      }
      expect(
        (await failure(api.start(OWNER, { command: 'true', cwd: join(folder, 'missing') })))
          .message,
      ).toContain('missing');
      expect((await api.list(OWNER, {})).total).toBe(0);
    });

    it('[H5] expands ~ in the working directory', async () => {
      const api = await make();
      const id = await startProcess(api, { command: 'pwd', cwd: '~' });
      expect((await waitFor(api, id, closed)).process.cwd).not.toContain('~');
    });

    it('[H6] one key: equal starts attach, concurrent ones spawn once, others conflict, a failed one frees it', async () => {
      const api = await make();
      const folder = temporaryFolder();
      const spec = { command: `echo ran >> ${folder}/ran; sleep 100`, key: 'k/1 ?' };
      const answers = await Promise.all([1, 2, 3, 4].map(() => api.start(OWNER, spec)));
      expect(new Set(answers.map(({ process }) => process.id)).size).toBe(1);
      expect(answers.filter(({ attached }) => !attached)).toHaveLength(1);
      expect((await failure(api.start(OWNER, { ...spec, command: 'true' }))).code).toBe(
        'key_conflict',
      );
      const other = await api.start('chat-2', { ...spec, command: 'true' });
      expect(other.attached).toBe(false);
      const failing = { argv: ['no-such-program'], key: 'k2' };
      expect((await failure(api.start(OWNER, failing))).code).toBe('program_not_found');
      expect((await api.start(OWNER, { command: 'true', key: 'k2' })).attached).toBe(false);
    });

    it("[H7] takes an id of the caller's choice, which belongs to that owner alone", async () => {
      const api = await make();
      const first = await api.start(OWNER, { command: 'echo one', id: 'build' });
      const again = await api.start(OWNER, { command: 'echo one', id: 'build' });
      const other = await api.start('chat-2', { command: 'echo two', id: 'build' });
      expect([first.process.id, again.attached, other.attached]).toEqual(['build', true, false]);
      expect((await failure(api.start(OWNER, { command: 'echo x', id: 'build' }))).code).toBe(
        'id_taken',
      );
      await waitFor(api, 'build', closed);
      expect(await outputText(api, 'build')).toBe('one\n');
    });

    it('[H8] runs a program on a terminal: its size, its type, input echoed, resized', async () => {
      const api = await make();
      const size = { cols: 101, rows: 33 };
      const id = await startProcess(api, {
        command: 'tty; echo $TERM; stty size; read line; echo "<$line>"; stty size',
        streams: 'pty',
        size,
      });
      // What is typed before the line has ended is echoed inside it.
      await untilPrinted(api, id, '33 101\r\n');
      await api.resize(OWNER, { id, size: { cols: 90, rows: 20 } });
      await api.write(OWNER, { id, data: Buffer.from('typed\n') });
      await waitFor(api, id, closed);
      const text = await outputText(api, id);
      expect(text).toMatch(
        /^\/dev\/pts\/\d+\r\nxterm-256color\r\n33 101\r\ntyped\r\n<typed>\r\n20 90\r\n$/,
      );
      const { events } = await pages(api, id);
      expect(events.find((event) => event.kind === 'resize')).toMatchObject({
        body: { cols: 90, rows: 20 },
      });
      const input = events.find((event) => event.kind === 'input');
      expect(input).toMatchObject({
        body: { bytes: 6, data: Buffer.from('typed\n').toString('base64') },
      });
    });

    it('[H9] does not record what is typed while the terminal does not echo', async () => {
      const api = await make();
      const id = await startProcess(api, {
        command: 'stty -echo; echo ready; read secret; stty echo; echo done',
        streams: 'pty',
      });
      await waitFor(api, id, { kind: 'text', text: 'ready' });
      await api.write(OWNER, { id, data: Buffer.from('hunter2\n') });
      await waitFor(api, id, closed);
      const { events } = await pages(api, id);
      expect(events.find((event) => event.kind === 'input')).toMatchObject({ body: { bytes: 8 } });
      expect(JSON.stringify(events)).not.toContain(Buffer.from('hunter2\n').toString('base64'));
    });

    it('[H10] ends a process after its hard timeout, and says so', async () => {
      const api = await make();
      const id = await startProcess(api, { command: 'sleep 1000', hardTimeoutMs: 50 });
      const met = await waitFor(api, id, exit);
      expect(met.process.outcome).toEqual({ kind: 'timeout', afterMs: 50, signal: 'SIGTERM' });
    });
  });

  describe('starts that wait', () => {
    it('[H37] are answered when the process has exited', async () => {
      const api = await make();
      const spec = { command: 'echo said; exit 3', waitMs: 60_000 };
      const { process } = await api.start(OWNER, spec);
      expect(process.outcome).toEqual({ kind: 'exit', code: 3 });
      const { text } = await api.text(OWNER, { id: process.id });
      expect(text).toBe('said\n');
    });

    it('[H37] are answered a moment later when everything of it is over, if so asked', async () => {
      const api = await make();
      const late = 'exec 3<&0; (read x <&3; echo late) & exit 5';
      const spec = { command: late, stdin: 'pipe', waitMs: 60_000, settleMs: 60_000 } as const;
      const { process } = await api.start(OWNER, { ...spec, settleMs: 1 });
      expect(process).toMatchObject({ state: 'exited', settled: false, outcome: { code: 5 } });
      const whole = await api.start(OWNER, { ...spec, command: 'echo x; exit 6' });
      expect(whole.process).toMatchObject({
        state: 'closed',
        settled: true,
        bytes: { total: 2 },
        outcome: { code: 6 },
      });
    });

    it('[H37] are answered when the time is over, or attach and wait again', async () => {
      const api = await make();
      const spec = { command: 'read x; exit 4', stdin: 'pipe', key: 'once' } as const;
      const { process } = await api.start(OWNER, { ...spec, waitMs: 1 });
      expect(process.state).toBe('running');
      const again = api.start(OWNER, { ...spec, waitMs: 60_000 });
      await api.write(OWNER, { id: process.id, data: Buffer.from('x\n') });
      expect(await again).toMatchObject({
        attached: true,
        process: { id: process.id, outcome: { kind: 'exit', code: 4 } },
      });
    });

    it('[H37] leave the process to itself when the caller goes away', async () => {
      const api = await make();
      const away = new AbortController();
      const spec = { command: 'read x', stdin: 'pipe', id: 'left', waitMs: 60_000 } as const;
      const waiting = api.start(OWNER, spec, away.signal);
      while ((await api.health(OWNER, {})).parkedWaits === 0) await nextTurn();
      away.abort();
      await expect(waiting).rejects.toMatchObject({ code: 'aborted' });
      expect(await api.get(OWNER, { id: 'left' })).toMatchObject({ state: 'running' });
      while ((await api.health(OWNER, {})).parkedWaits > 0) await nextTurn();
    });

    it('[H37] are answered at once where no more may wait', async () => {
      const api = await make({ limits: { parkedWaits: 1 } });
      const id = await startProcess(api, { command: 'read x', stdin: 'pipe' });
      const parked = waitFor(api, id, exit);
      while ((await api.health(OWNER, {})).parkedWaits === 0) await nextTurn();
      const { process } = await api.start(OWNER, { command: 'sleep 1000', waitMs: 60_000 });
      expect(process.state).toBe('running');
      await api.write(OWNER, { id, eof: true });
      await parked;
    });
  });

  describe('truth', () => {
    it('[H11] tells the exit code, or the signal and who sent it', async () => {
      const api = await make();
      const code = await startProcess(api, { command: 'exit 42' });
      const self = await startProcess(api, { command: 'kill -SEGV $$' });
      const other = await startProcess(api, { command: 'sleep 1000' });
      await api.signal(OWNER, { id: other, signal: 'usr1', by: 'the tester' });
      expect((await waitFor(api, code, exit)).process.outcome).toEqual({ kind: 'exit', code: 42 });
      expect((await waitFor(api, self, exit)).process.outcome).toEqual({
        kind: 'signal',
        signal: 'SIGSEGV',
        by: 'outside',
      });
      expect((await waitFor(api, other, exit)).process.outcome).toEqual({
        kind: 'signal',
        signal: 'SIGUSR1',
        by: 'the tester',
      });
    });

    it('[H12] tells the exit while a child still holds the output, takes its late output after it, and closes last', async () => {
      const api = await make({ limits: { closedAgeMs: 0 } });
      const hold = gate();
      const id = await startProcess(api, {
        command: `echo early; (${hold.wait}; echo late) & exit 7`,
        keepMs: 3_600_000,
      });
      const seen = await waitFor(api, id, exit);
      expect(seen.process).toMatchObject({
        state: 'exited',
        settled: false,
        outcome: { kind: 'exit', code: 7 },
      });
      const before = await pages(api, id);
      const exitSeq = before.events.find((event) => event.kind === 'exited')?.seq ?? 0;
      const late = api.read(OWNER, { id, after: exitSeq, waitMs: 600_000 });
      const wokenByClose = api.wait(OWNER, { waits: [{ id, for: [closed] }] });
      hold.open();
      expect((await late).nextAfter).toBeGreaterThan(exitSeq);
      expect((await wokenByClose).met[0]).toMatchObject({
        met: true,
        process: { state: 'closed' },
      });
      expect(await outputText(api, id)).toBe('early\nlate\n');
      const kinds = (await pages(api, id)).events.map((event) => event.kind);
      expect(kinds).toEqual(['started', 'output', 'exited', 'output', 'closed']);
      await waitFor(api, id, settled);
    });

    it('[H13] numbers the exit after all output that was there', async () => {
      const api = await make();
      for (let round = 0; round < sized(8, 20); round += 1) {
        const id = await startProcess(api, { command: 'seq 1 5000' });
        await waitFor(api, id, exit);
        const { events } = await pages(api, id);
        const exitAt = events.findIndex((event) => event.kind === 'exited');
        expect(events.slice(exitAt).some((event) => event.kind === 'output')).toBe(false);
        expect((await outputText(api, id)).endsWith('4999\n5000\n')).toBe(true);
      }
    });
  });

  describe('input', () => {
    it('[H14] writes to stdin, applies a write id once, and closes it on request', async () => {
      const api = await make();
      const id = await startProcess(api, { command: 'cat; echo end', stdin: 'pipe' });
      const data = Buffer.from('once\n');
      expect(await api.write(OWNER, { id, data, writeId: 'w1' })).toMatchObject({
        bytes: 5,
        repeated: false,
      });
      expect(await api.write(OWNER, { id, data, writeId: 'w1' })).toMatchObject({
        bytes: 5,
        repeated: true,
      });
      await api.write(OWNER, { id, data: Buffer.from('twice\n'), eof: true });
      await waitFor(api, id, closed);
      expect(await outputText(api, id)).toBe('once\ntwice\nend\n');
      expect((await failure(api.write(OWNER, { id, data }))).code).toBe('not_running');
    });

    it('[H15] says plainly that a process has no stdin, or no size', async () => {
      const api = await make();
      const id = await startProcess(api, { command: 'cat; sleep 100' });
      expect((await failure(api.write(OWNER, { id, data: Buffer.from('x') }))).code).toBe(
        'stdin_closed',
      );
      expect((await failure(api.resize(OWNER, { id, size: { cols: 1, rows: 1 } }))).code).toBe(
        'not_a_terminal',
      );
    });

    it('[H16] takes a megabyte of input through a slow reader without losing a byte', async () => {
      const api = await make();
      const id = await startProcess(api, { command: 'wc -c; ', stdin: 'pipe' });
      const chunk = Buffer.alloc(64 * 1024, 'i');
      const writes = Array.from({ length: 16 }, (_, index) =>
        api.write(OWNER, { id, data: chunk, writeId: `w${index}` }),
      );
      await Promise.all(writes);
      await api.write(OWNER, { id, eof: true });
      await waitFor(api, id, closed);
      expect(await outputText(api, id)).toBe(`${1024 * 1024}\n`);
    });
  });

  describe('signals', () => {
    it('[H17] terminate gives a grace, then kills; the answer says which, and what survived', async () => {
      const api = await make();
      const polite = await startProcess(api, {
        command: 'trap "echo bye; exit 5" TERM; echo up; while :; do sleep 0.01; done',
      });
      const deaf = await startProcess(api, {
        command: 'trap "" TERM; echo up; while :; do sleep 1; done',
      });
      for (const id of [polite, deaf]) await waitFor(api, id, { kind: 'text', text: 'up' });
      expect(
        await api.signal(OWNER, { id: polite, signal: 'terminate', graceMs: 60_000 }),
      ).toMatchObject({ escalated: false, survivors: [] });
      expect(
        await api.signal(OWNER, { id: deaf, signal: 'terminate', graceMs: 50, by: 'me' }),
      ).toMatchObject({ escalated: true, survivors: [] });
      expect((await api.get(OWNER, { id: polite })).outcome).toEqual({ kind: 'exit', code: 5 });
      expect((await api.get(OWNER, { id: deaf })).outcome).toEqual({
        kind: 'signal',
        signal: 'SIGKILL',
        by: 'me',
      });
      expect((await failure(api.signal(OWNER, { id: deaf, signal: 'kill' }))).code).toBe(
        'not_running',
      );
    });

    it('[D25] is answered when the process is settled, if nobody is left', async () => {
      const api = await make();
      for (const signal of ['kill', 'terminate', 'kill', 'terminate']) {
        const id = await startProcess(api, {
          command: '(sleep 1000; exit 1) & sleep 1000 & exit 3',
        });
        await waitFor(api, id, { kind: 'exit' });
        const { survivors } = await api.signal(OWNER, { id, signal });
        const { settled } = await api.get(OWNER, { id });
        expect([signal, survivors, settled]).toEqual([signal, [], true]);
      }
    });

    it('[H18] reaches stopped children, and descendants that left by setsid and double fork', async () => {
      const api = await make();
      const script =
        'setsid sh -c "trap \\"\\" TERM; echo one; while :; do sleep 1; done" & (setsid sh -c "(sleep 1000 & echo two)" &) ; sleep 1000 & kill -STOP $!; wait';
      const env = { MARK: randomUUID() };
      const id = await startProcess(api, { command: script, env });
      await waitFor(api, id, { kind: 'text', text: 'one' });
      await waitFor(api, id, { kind: 'text', text: 'two' });
      const answer = await api.signal(OWNER, { id, signal: 'terminate', graceMs: 100 });
      expect(answer.survivors).toEqual([]);
      expect(answer.escapees.length).toBeGreaterThanOrEqual(2);
      expect(processesMarked(env)).toEqual([]);
      expect((await api.get(OWNER, { id })).settled).toBe(true);
    });

    it('[H19] ends what is left of a process whose root has exited', async () => {
      const api = await make();
      const env = { MARK: randomUUID() };
      const id = await startProcess(api, {
        env,
        // The daemon closes its streams itself: while it is between fork and exec, /proc shows it without an environment.
        command: `setsid sh -c 'exec >/dev/null 2>&1; while :; do sleep 1000; done' &`,
      });
      const met = await waitFor(api, id, closed);
      expect(met.process.outcome).toEqual({ kind: 'exit', code: 0 });
      expect(processesMarked(env)).not.toEqual([]);
      const answer = await api.signal(OWNER, { id, signal: 'kill' });
      expect(answer.survivors).toEqual([]);
      expect(processesMarked(env)).toEqual([]);
    });

    it('[H20] refuses a signal that does not exist, by name', async () => {
      const api = await make();
      const id = await startProcess(api, { command: 'sleep 100' });
      const error = await failure(api.signal(OWNER, { id, signal: 'SIGNOPE' }));
      expect([error.code, error.message]).toEqual([
        'invalid_input',
        expect.stringContaining('SIGNOPE'),
      ]);
    });
  });

  describe('owners', () => {
    it('[H21] a foreign process and an unknown one are the same to every operation', async () => {
      const api = await make();
      const id = await startProcess(api, { command: 'sleep 100', stdin: 'pipe' });
      const stranger = 'chat-2';
      const ask = (target: string): Promise<unknown>[] => [
        api.get(stranger, { id: target }),
        api.read(stranger, { id: target }),
        api.range(stranger, { id: target, offset: 0 }),
        api.text(stranger, { id: target }),
        api.search(stranger, { id: target, pattern: 'x' }),
        api.write(stranger, { id: target, data: Buffer.from('x') }),
        api.resize(stranger, { id: target, size: { cols: 1, rows: 1 } }),
        api.signal(stranger, { id: target, signal: 'kill' }),
        api.wait(stranger, { waits: [{ id: target, for: [exit] }] }),
        api.ports(stranger, { id: target }),
        api.tree(stranger, { id: target }),
        api.remove(stranger, { id: target }),
      ];
      const foreign = await Promise.all(ask(id).map(failure));
      const unknown = await Promise.all(ask('0'.repeat(26)).map(failure));
      const plain = (errors: { code: string; message: string }[], name: string): string[] =>
        errors.map(({ code, message }) => `${code} ${message.replaceAll(name, 'ID')}`);
      expect(plain(foreign, id)).toEqual(plain(unknown, '0'.repeat(26)));
      expect(foreign.every(({ code }) => code === 'not_found')).toBe(true);
      expect(await api.list(stranger, {})).toEqual({ processes: [], total: 0 });
      expect((await api.list('*', {})).total).toBe(1);
    });

    it('[H22] lists running ones first, then the newest, with a total and pages', async () => {
      const api = await make();
      const done = await startProcess(api, { command: 'true', name: 'done' });
      await waitFor(api, done, closed);
      for (const name of ['a', 'b', 'c']) await startProcess(api, { command: 'sleep 100', name });
      const names = async (filter: object): Promise<unknown[]> => {
        const { processes, total } = await api.list(OWNER, filter);
        return [total, ...processes.map((process) => process.name)];
      };
      expect(await names({})).toEqual([4, 'c', 'b', 'a', 'done']);
      expect(await names({ limit: 2, skip: 1 })).toEqual([4, 'b', 'a']);
      expect(await names({ state: 'closed' })).toEqual([1, 'done']);
    });
  });

  describe('waits', () => {
    it('[H23] text and pattern are found from a cursor, across chunks, with the line they stand in', async () => {
      const api = await make();
      const id = await startProcess(api, {
        command: 'printf "booting\\nServer rea"; read _; printf "dy on :80\\n"; sleep 100',
        stdin: 'pipe',
      });
      await waitFor(api, id, { kind: 'text', text: 'rea' });
      const text = waitFor(api, id, { kind: 'text', text: 'ready' });
      const pattern = waitFor(api, id, { kind: 'pattern', pattern: 'on :(\\d+)$' });
      const nothing = waitFor(
        api,
        id,
        { kind: 'text', text: 'booting', from: 3 },
        { kind: 'text', text: 'ready' },
      );
      await api.write(OWNER, { id, data: Buffer.from('\n') });
      expect(await text).toMatchObject({
        met: true,
        match: 'ready',
        line: 'Server ready on :80',
        lineOffset: 8,
      });
      expect(await pattern).toMatchObject({ met: true, match: 'on :80' });
      expect(await nothing).toMatchObject({ index: 1 });
    });

    it('[H24] a wait that can no longer be met ends at once and says so', async () => {
      const api = await make();
      const id = await startProcess(api, { command: 'echo something else' });
      const met = await waitFor(
        api,
        id,
        { kind: 'text', text: 'never' },
        { kind: 'pattern', pattern: 'ne+ver' },
      );
      expect(met).toMatchObject({ met: false, process: { state: 'closed' } });
      expect(await waitFor(api, id, { kind: 'growth', after: 99 })).toMatchObject({ met: false });
      expect(await waitFor(api, id, { kind: 'silence', forMs: 99_999 })).toMatchObject({
        met: false,
      });
      expect(await waitFor(api, id, { kind: 'port', port: 9 })).toMatchObject({ met: false });
    });

    it('[H25] waits for a port that a descendant listens on, and lists it', async () => {
      const api = await make();
      const server =
        'const s=require("net").createServer().listen(0,"127.0.0.1",()=>console.log("port",s.address().port))';
      const id = await startProcess(api, {
        command: `sh -c '${process.execPath} -e "${server.replaceAll('"', '\\"')}"; true'`,
      });
      const any = await waitFor(api, id, { kind: 'port' });
      expect(any.port).toBeGreaterThan(0);
      expect(await waitFor(api, id, { kind: 'port', port: any.port ?? 0 })).toMatchObject({
        met: true,
        port: any.port,
      });
      expect((await api.ports(OWNER, { id })).ports).toMatchObject([
        { port: any.port, address: '127.0.0.1' },
      ]);
      const stranger = createServer();
      await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve));
      const { port } = stranger.address() as { port: number };
      const answer = await api.wait(OWNER, {
        waits: [{ id, for: [{ kind: 'port', port }] }],
        timeoutMs: 60,
      });
      stranger.close();
      expect(answer).toEqual({ met: [], timedOut: true });
    });

    it('[H106] lists the living processes of a start with what each uses, and nothing of others', async () => {
      const api = await make();
      const busy = 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo counted; sleep 1000';
      const id = await startProcess(api, { command: `sleep 1001 & sh -c '${busy}'; true` });
      const other = await startProcess(api, { command: 'sleep 1002; true' });
      await waitFor(api, id, { kind: 'text', text: 'counted' });
      const { members, total } = await api.tree(OWNER, { id });
      const root = (await api.get(OWNER, { id })).pid;
      const shell = members.find(({ command }) => command.startsWith('sh -c i=0'));
      expect(total).toBe(members.length);
      expect(members.find(({ pid }) => pid === root)).toBeDefined();
      expect(shell).toMatchObject({ parent: root });
      expect(shell?.cpuMs).toBeGreaterThan(0);
      expect(shell?.memoryBytes).toBeGreaterThan(4096);
      expect(members.filter(({ command }) => command === 'sleep 1001')).toHaveLength(1);
      expect(members.filter(({ command }) => command === 'sleep 1002')).toEqual([]);
      for (const each of [id, other]) await api.remove(OWNER, { id: each, force: true });
      await expect(api.tree(OWNER, { id })).rejects.toMatchObject({ code: 'not_found' });
    });

    it('[H26] waits for silence, which output puts off', async () => {
      const api = await make();
      const id = await startProcess(api, {
        command: 'for i in $(seq 8); do echo $i; sleep 0.05; done; sleep 100',
      });
      // Before its first output it is silent since its start.
      await waitFor(api, id, { kind: 'text', text: '1' });
      const met = await waitFor(api, id, { kind: 'silence', forMs: 300 });
      expect(met).toMatchObject({ met: true, kind: 'silence' });
      // A timer may come a millisecond early.
      expect(Date.now() - (met.process.lastOutputAtMs ?? Infinity)).toBeGreaterThanOrEqual(298);
    });

    it('[H27] waits for the first of several processes, or for all', async () => {
      const api = await make();
      const hold = gate();
      const quick = await startProcess(api, { command: 'exit 1' });
      const slow = await startProcess(api, { command: `${hold.wait}; exit 2` });
      const waits = [quick, slow].map((id) => ({ id, for: [exit] }));
      const first = await api.wait(OWNER, { waits });
      expect(first.met.map(({ id }) => id)).toEqual([quick]);
      const all = api.wait(OWNER, { waits, mode: 'all' });
      hold.open();
      expect((await all).met.map(({ process }) => process.outcome)).toEqual([
        { kind: 'exit', code: 1 },
        { kind: 'exit', code: 2 },
      ]);
    });

    it('[H28] a time limit answers without ending anything, an abort rejects, and neither leaves a waiter', async () => {
      const api = await make();
      const id = await startProcess(api, { command: 'sleep 1000' });
      expect(await api.wait(OWNER, { waits: [{ id, for: [exit] }], timeoutMs: 20 })).toEqual({
        met: [],
        timedOut: true,
      });
      const controller = new AbortController();
      const parked = [1, 2, 3].map(() =>
        failure(
          api.wait(
            OWNER,
            { waits: [{ id, for: [exit, { kind: 'silence', forMs: 1e6 }] }] },
            controller.signal,
          ),
        ),
      );
      const reading = failure(api.read(OWNER, { id, after: 1, waitMs: 1e6 }, controller.signal));
      await parkedCount(api, 4);
      controller.abort();
      for (const ended of [...parked, reading]) expect((await ended).code).toBe('aborted');
      // A host of a fleet hears of it a moment later.
      while ((await api.health(OWNER, {})).parkedWaits > 0) await nextTurn();
      expect((await api.get(OWNER, { id })).state).toBe('running');
    });
  });

  describe('views', () => {
    it('[H29] shows head and tail within 32,768 bytes, whole when it fits', async () => {
      const api = await make();
      const short = await startProcess(api, { command: 'seq 1 4000' });
      const long = await startProcess(api, { command: 'seq 1 200000' });
      await waitFor(api, short, closed);
      await waitFor(api, long, closed);
      const whole = await api.text(OWNER, { id: short });
      expect(whole.truncated).toBeUndefined();
      expect(whole.text.length).toBe(18_893);
      const cut = await api.text(OWNER, { id: long });
      expect(Buffer.byteLength(cut.text)).toBeLessThanOrEqual(32_768);
      expect(cut.text.startsWith('1\n2\n3\n') && cut.text.endsWith('199999\n200000\n')).toBe(true);
      expect(cut.truncated).toMatchObject({ originalBytes: 1_288_895, strategy: 'head_tail' });
    });

    it('[H30] searches the whole retained output, with context and offsets', async () => {
      const api = await make();
      const id = await startProcess(api, {
        command: 'seq 1 30000; echo "Error: disk on fire"; seq 1 10',
      });
      await waitFor(api, id, closed);
      const { hits } = await api.search(OWNER, {
        id,
        pattern: 'error: .* fire',
        ignoreCase: true,
        context: 1,
      });
      expect(hits).toMatchObject([
        { line: 'Error: disk on fire', before: ['30000'], after: ['1'] },
      ]);
      const range = await api.range(OWNER, { id, offset: hits[0]?.offset ?? 0, maxBytes: 6 });
      expect(range.bytes.toString()).toBe('Error:');
      expect((await failure(api.search(OWNER, { id, pattern: '(' }))).code).toBe('pattern_invalid');
    });
  });

  describe('bounds', () => {
    it('[H31] keeps a flood within its size on disk and tells a late reader exactly what it missed', async () => {
      const limits = { journalBytes: 2 * 1024 * 1024, journalHeadBytes: 512 * 1024 };
      const api = await make({ limits });
      const id = await startProcess(api, { command: 'seq 1 1500000' });
      const { process } = await waitFor(api, id, closed);
      const total = 10_888_896;
      expect(process.bytes).toMatchObject({ total, lost: 0 });
      expect(process.bytes.retained + process.bytes.dropped).toBe(total);
      const read = await pages(api, id, 1024 * 1024);
      const held = read.events.reduce(
        (sum, event) => sum + (event.kind === 'output' ? event.data.length : 0),
        0,
      );
      const missed = read.pages.reduce((sum, page) => sum + (page.missed?.bytes ?? 0), 0);
      expect([held + missed, process.bytes.retained]).toEqual([total, held]);
      expect((await api.health(OWNER, {})).journalBytes).toBeLessThanOrEqual(limits.journalBytes);
    });

    it('[H32] forgets closed processes beyond their number, oldest first, with their files', async () => {
      const api = await make({ limits: { closedCount: 3 } });
      const ids: string[] = [];
      for (let index = 0; index < 6; index += 1) {
        const id = await startProcess(api, { command: `echo ${index}`, key: `key-${index}` });
        await waitFor(api, id, closed);
        // What has left somebody behind is kept: it is by its process that he is found.
        await waitFor(api, id, { kind: 'settled' });
        ids.push(id);
      }
      const { processes } = await api.list(OWNER, {});
      expect(processes.map(({ id }) => id)).toEqual(ids.slice(3).toReversed());
      expect((await failure(api.get(OWNER, { id: ids[0] ?? '' }))).code).toBe('not_found');
      expect((await api.start(OWNER, { command: 'echo 0', key: 'key-0' })).attached).toBe(false);
    });

    it('[H33] refuses a start beyond the number of live processes, and a removal of a live one', async () => {
      const api = await make({ limits: { liveCount: 2 } });
      const env = { MARK: randomUUID() };
      const id = await startProcess(api, { command: 'sleep 100', env });
      await startProcess(api, { command: 'sleep 100' });
      expect((await failure(api.start(OWNER, { command: 'true' }))).code).toBe('limit_reached');
      expect((await failure(api.remove(OWNER, { id }))).code).toBe('still_running');
      await api.remove(OWNER, { id, force: true });
      expect(processesMarked(env)).toEqual([]);
      expect((await api.start(OWNER, { command: 'true' })).attached).toBe(false);
    });
  });

  it('[H36] removing a process while its output is being read ends the reading and nothing else', async () => {
    const api = await make();
    for (const bytes of [1000, 5_000_000]) {
      const id = await startProcess(api, { command: `yes | head -c ${bytes}` });
      await waitFor(api, id, closed);
      const reading = Promise.allSettled([
        pages(api, id),
        api.text(OWNER, { id }),
        api.search(OWNER, { id, pattern: 'never' }),
      ]);
      await api.remove(OWNER, { id, force: true });
      await reading;
      expect((await failure(api.get(OWNER, { id }))).code).toBe('not_found');
    }
    expect((await api.health(OWNER, {})).live).toBe(0);
  });

  describe('completions', () => {
    it('[H34] tells each end once per subscriber until it is acknowledged, and never after', async () => {
      const api = await make();
      const id = await startProcess(api, {
        command: 'echo working; echo "it broke" >&2; exit 9',
        name: 'build',
      });
      const { completions } = await api.completions(OWNER, { waitMs: 60_000 });
      expect(completions).toMatchObject([
        {
          id,
          name: 'build',
          outcome: { kind: 'exit', code: 9 },
          bytes: 17,
          lastLines: 'working\nit broke\n',
        },
      ]);
      expect((await api.completions(OWNER, {})).completions).toEqual(completions);
      const numbers = completions.map(({ number }) => number);
      expect(await api.acknowledge('chat-2', { numbers })).toEqual({ acknowledged: 0 });
      expect(await api.acknowledge(OWNER, { numbers })).toEqual({ acknowledged: 1 });
      expect(await api.acknowledge(OWNER, { numbers })).toEqual({ acknowledged: 0 });
      expect((await api.completions(OWNER, {})).completions).toEqual([]);
      expect((await api.completions(OWNER, { subscriber: 'other' })).completions).toHaveLength(1);
      expect((await api.completions('chat-2', {})).completions).toEqual([]);
    });
  });
});

async function parkedCount(api: HostApi, count: number): Promise<void> {
  while ((await api.health(OWNER, {})).parkedWaits < count) await nextTurn();
}

/** Living processes that have this variable. */
function processesMarked({ MARK }: { readonly MARK: string }): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const alive = !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
        return alive && readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`MARK=${MARK}`);
      } catch {
        return false;
      }
    })
    .map(Number);
}

describe('time', () => {
  it('[H35] a closed process is forgotten when its time is over, counted from closing; a held one is not', async () => {
    const clock = new FakeClock();
    const host = await inProcess({ clock });
    const hold = gate();
    const short = await startProcess(host, { command: 'echo x', keepMs: 5000 });
    const held = await startProcess(host, {
      command: `(${hold.wait}; echo late) & exit 1`,
      keepMs: 5000,
    });
    await waitFor(host, short, closed);
    await waitFor(host, held, exit);
    await waitFor(host, short, settled);
    clock.advance(4000);
    expect((await host.get(OWNER, { id: short })).state).toBe('closed');
    clock.advance(2000);
    expect((await failure(host.get(OWNER, { id: short }))).code).toBe('not_found');
    clock.advance(1e9);
    const late = host.read(OWNER, { id: held, after: 2, waitMs: 1e12 });
    hold.open();
    expect((await late).nextAfter).toBeGreaterThan(2);
    await waitFor(host, held, closed);
    expect(await outputText(host, held)).toBe('late\n');
  });
});
