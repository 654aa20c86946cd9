// One suite over every way to a terminal: a host of this program, a keeper, and HTTP.

import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Api } from '../../src/client/api.ts';
import { httpApi } from '../../src/client/http-api.ts';
import type { TerminalApi } from '../../src/client/terminal-api.ts';
import { serve } from '../support/coder-client.ts';
import { failure, inProcess, onCleanup, overKeeper, temporaryFolder } from '../support/hosts.ts';
import { apiOver } from '../support/in-process-api.ts';

const OWNER = 'me';
const PROMPT = { argv: ['/bin/bash'], env: { PS1: '$ ', HOME: '/' } };

async function overHttp(): Promise<Api> {
  const served = await serve({ home: temporaryFolder() });
  onCleanup(() => served.stop());
  const api = httpApi({ socketPath: join(served.home, 'server.sock'), owner: OWNER });
  onCleanup(() => api.close());
  return api;
}

const ways: Readonly<Record<string, () => Promise<Api>>> = {
  'in process': async () => apiOver(await inProcess(), OWNER),
  'over a keeper': async () => apiOver(await overKeeper(), OWNER),
  'over HTTP': overHttp,
};

async function opened(
  make: () => Promise<Api>,
): Promise<{ api: Api; terminals: TerminalApi; id: string }> {
  const api = await make();
  const { process } = await api.terminals.open({ ...PROMPT, size: { cols: 60, rows: 10 } });
  return { api, terminals: api.terminals, id: process.id };
}

for (const [name, make] of Object.entries(ways)) {
  describe(`a terminal ${name}`, () => {
    it('[TM150] opens a shell that marks its commands by default', async () => {
      const { terminals } = await make();
      const { process } = await terminals.open({ env: { SHELL: '/bin/bash' } });
      expect(process).toMatchObject({ streams: 'pty', owner: OWNER, state: 'running' });
      expect(process.terminal?.marks).not.toBeUndefined();
    });

    it('[TM150] runs a command and cuts out what it printed', async () => {
      const { terminals, id } = await opened(make);
      expect(await terminals.run({ id, command: 'echo hi; (exit 3)' })).toMatchObject({
        typed: true,
        completed: true,
        timedOut: false,
        completion: 'marks',
        exitCode: 3,
        output: 'hi\n',
      });
      expect(await terminals.run({ id, command: 'true' })).toMatchObject({ output: '' });
      const long = await terminals.run({ id, command: 'seq 20000' });
      expect(long.output?.endsWith('\n19999\n20000\n')).toBe(true);
      expect(long.truncated?.totalBytes).toBe(
        (long.truncated?.omittedBytes ?? 0) + (long.output ?? '').replaceAll('\n', '\r\n').length,
      );
      const again = { id, command: 'echo once', run: 'named' };
      const [one, two] = [await terminals.run(again), await terminals.run(again)];
      expect(two).toEqual(one);
    });

    it('[TM150] takes one kind of input at a time', async () => {
      const { terminals, id } = await opened(make);
      await terminals.run({ id, command: 'true' });
      // A run ends before the shell draws its prompt, and with it asks for brackets around pastes.
      const prompt = { regex: 'true\\n[^\\n]*[#$]', timeoutMs: 60_000 };
      expect(await terminals.waitForScreen(id, prompt)).toMatchObject({ matched: true });
      expect(await terminals.input(id, { text: 'echo ty' })).toMatchObject({ bytes: 7 });
      expect(await terminals.input(id, { paste: 'ped' })).toMatchObject({ bytes: 15 });
      const base64 = Buffer.from('!').toString('base64');
      expect(await terminals.input(id, { base64 })).toMatchObject({ bytes: 1 });
      const enter = await terminals.input(id, { keys: ['Backspace', 'Enter'] });
      expect(enter).toMatchObject({ bytes: 2 });
      const shown = await terminals.waitForScreen(id, { regex: '\ntyped\n', timeoutMs: 60_000 });
      expect(shown).toMatchObject({ matched: true, timedOut: false });
      for (const wrong of [{}, { text: 'x', keys: ['Enter'] }, { paste: 'x', base64 }])
        expect(await failure(terminals.input(id, wrong))).toMatchObject({
          code: 'invalid_input',
          message: 'Give exactly one of "text", "base64", "paste" and "keys".',
        });
    });

    it('[TM150] waits for a screen, and refuses to wait for nothing or for two things', async () => {
      const { terminals, id } = await opened(make);
      await terminals.run({ id, command: 'echo seen' });
      const waited = await terminals.waitForScreen(id, { text: 'seen', timeoutMs: 60_000 });
      expect(waited).toMatchObject({ matched: true, matchedText: 'seen', snapshot: { cols: 60 } });
      expect(await terminals.waitForScreen(id, { text: 'never', timeoutMs: 1 })).toMatchObject({
        matched: false,
        timedOut: true,
      });
      const nothing = await failure(terminals.waitForScreen(id, { timeoutMs: 1 }));
      expect(nothing).toMatchObject({
        code: 'invalid_input',
        message: 'There is nothing to wait for.',
      });
      expect(await failure(terminals.waitForScreen(id, { text: 'a', regex: 'b' }))).toMatchObject({
        code: 'invalid_input',
        message: '"regex": is given together with "text"',
        details: { field: 'regex' },
      });
      const gone = terminals.waitForScreen(id, { text: 'never' }, AbortSignal.abort());
      expect(await failure(gone)).toMatchObject({ code: 'aborted' });
    });

    it('[TM150] shows its screen as text and as pictures, and a past one', async () => {
      const { terminals, id } = await opened(make);
      const { seq } = await terminals.run({ id, command: 'echo first' });
      await terminals.run({ id, command: 'echo second' });
      const now = await terminals.snapshot(id, {});
      expect(now).toMatchObject({ format: 'text', sessionId: id, cols: 60, rows: 10 });
      expect(now.text).toContain('\nsecond\n');
      const past = await terminals.snapshot(id, { at: seq, scrollback: true });
      expect(past.text).not.toContain('second');
      const { bytes, missing } = await terminals.screenshot(id, { scale: 1 });
      expect([bytes.subarray(1, 4).toString(), missing]).toEqual(['PNG', 0]);
      const page = await terminals.screenshot(id, { format: 'html', theme: 'light' });
      expect(page.bytes.toString()).toContain('second');
      const drawing = await terminals.screenshot(id, { format: 'svg', showCursor: true });
      expect(drawing.bytes.toString()).toContain('<svg');
    });

    it('[TM150] notes marks, and is recorded with them', async () => {
      const { terminals, id } = await opened(make);
      expect((await terminals.mark({ id, label: 'here' })).seq).toBeGreaterThan(0);
      const cast = (await terminals.recording(id, {})).toString();
      expect(JSON.parse(cast.split('\n', 1)[0] ?? '')).toMatchObject({ version: 2, width: 60 });
      expect(cast).toContain('"m","here"');
      const third = (await terminals.recording(id, { format: 'asciicast-v3' })).toString();
      expect(JSON.parse(third.split('\n', 1)[0] ?? '')).toMatchObject({ version: 3 });
      expect((await terminals.recording(id, { format: 'gif', speed: 10 })).subarray(0, 3)).toEqual(
        Buffer.from('GIF'),
      );
      expect(await failure(terminals.recording(id, { format: 'wav' }))).toMatchObject({
        code: 'invalid_input',
      });
    });

    it('[TM150] is gone once it is closed, and no process on pipes is one', async () => {
      const { api, terminals, id } = await opened(make);
      await terminals.close(id);
      expect(await failure(terminals.run({ id, command: 'x' }))).toMatchObject({
        code: 'not_found',
      });
      expect(await failure(terminals.close(id))).toMatchObject({ code: 'not_found' });
      const { process } = await api.start({ command: 'sleep 1000' });
      const onPipes = [
        () => terminals.snapshot(process.id, {}),
        () => terminals.input(process.id, { text: 'x' }),
        () => terminals.run({ id: process.id, command: 'x' }),
      ];
      for (const each of onPipes)
        expect(await failure(each())).toMatchObject({ code: 'not_a_terminal' });
    });
  });
}
