// The tools for terminals as the official client calls them: over stdio with a server and without one, and over HTTP.

import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apiOver } from '../support/in-process-api.ts';
import { Toolbox, toolFunctions } from '../../src/tools/toolbox.ts';
import { serve, type Served } from '../support/coder-client.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { inProcess, stopKeeper, temporaryFolder } from '../support/hosts.ts';
import { endServer, overHttp, overStdio, type Connected } from '../support/mcp-clients.ts';

type Answer = Record<string, unknown> & { readonly success: boolean };

let served: Served;
let home: string;

beforeAll(async () => {
  served = await serve({});
  home = mkdtempSync(join(tmpdir(), 'holdfast-mcp-test-'));
});

afterAll(async () => {
  await endServer(home);
  await stopKeeper(home);
  rmSync(home, { recursive: true, force: true });
  await served.stop();
});

async function call(
  { client }: Connected,
  name: string,
  input: Record<string, unknown>,
  callId?: string,
): Promise<Answer> {
  const meta = callId === undefined ? {} : { _meta: { 'test/callId': callId } };
  const answer = await client.callTool({ name, arguments: input, ...meta });
  const [first] = answer.content as unknown as [{ text: string }];
  if (answer.isError === true) throw new Error(first.text);
  return (answer.structuredContent ?? JSON.parse(first.text)) as Answer;
}

const http = (token = served.token): Promise<Connected> =>
  overHttp(served.server.url, { authorization: `Bearer ${token}` });

const ways: Readonly<Record<string, () => Promise<Connected>>> = {
  stdio: () => overStdio(home),
  'stdio --embed': () => overStdio(temporaryFolder(), '--embed'),
  HTTP: () => http(),
};

for (const [way, make] of Object.entries(ways)) {
  describe(`terminals over ${way}`, () => {
    it('[M12] a shell is opened, keeps its state, runs with exit codes, and is closed', async () => {
      const connected = await make();
      const workdir = realpathSync(temporaryFolder());
      const opened = await call(
        connected,
        'terminal_open',
        { workdir, cols: 90, rows: 20 },
        'open',
      );
      expect(opened).toMatchObject({ success: true, cols: 90, rows: 20 });
      const id = { terminal_id: opened['terminal_id'] };
      const again = await call(connected, 'terminal_open', { workdir, cols: 90, rows: 20 }, 'open');
      expect(again).toMatchObject({ ...id, attached: true });
      expect(
        await call(connected, 'terminal_run', { ...id, command: 'x=kept; cd /' }),
      ).toMatchObject({ success: true, exit_code: 0, workdir: '/' });
      const command = 'echo "$x $TERM"; stty size; (exit 3)';
      expect(await call(connected, 'terminal_run', { ...id, command })).toMatchObject({
        success: false,
        exit_code: 3,
        output: 'kept xterm-256color\n20 90\n',
        output_is: expect.stringContaining('untrusted') as string,
      });
      const slow = { ...id, command: 'echo re""ady; read x; echo "got $x"', timeout: '40s' };
      const running = call(connected, 'terminal_run', slow, 'slow');
      await call(connected, 'terminal_wait', { ...id, text: 'ready' });
      // The same call once more waits for the same run.
      const late = await call(connected, 'terminal_run', { ...slow, timeout: '100ms' }, 'slow');
      expect(late).toMatchObject({ success: false, timed_out: true });
      expect(late['screen'], '[L42]').toMatch(/^ready$/m);
      expect(late['note']).toContain('It keeps running');
      await call(connected, 'terminal_keys', { ...id, text: 'typed', keys: ['Enter'] });
      const same = await running;
      expect(same).toMatchObject({ success: true, exit_code: 0 });
      expect(same['output']).toContain('got typed');
      expect(await call(connected, 'terminal_close', id)).toMatchObject({ success: true });
      expect(await call(connected, 'terminal_read', id)).toMatchObject({ success: false });
    });

    it('[M13] a program is driven by keys and seen as text and as a picture', async () => {
      const connected = await make();
      const command = 'seq 100 | less -S';
      const opened = await call(connected, 'terminal_open', { command, rows: 10 });
      const id = { terminal_id: opened['terminal_id'] };
      expect(await call(connected, 'terminal_wait', { ...id, text: '9' })).toMatchObject({
        success: true,
        matched_text: '9',
        running: true,
      });
      const moved = await call(connected, 'terminal_keys', { ...id, keys: ['G'] });
      const bottom = await call(connected, 'terminal_wait', { ...id, pattern: '100\\n\\(END\\)' });
      expect(moved.success && bottom.success).toBe(true);
      const { screen } = await call(connected, 'terminal_read', id);
      expect(String(screen).split('\n').slice(0, 9)).toEqual(
        Array.from({ length: 9 }, (_, index) => String(92 + index)),
      );
      const missing = { ...id, text: 'never', wait_timeout: '50ms' };
      expect(await call(connected, 'terminal_wait', missing)).toMatchObject({
        success: false,
        timed_out: true,
        screen,
      });
      const { content, structuredContent } = await connected.client.callTool({
        name: 'terminal_screenshot',
        arguments: id,
      });
      // Clients that get structured content show the model nothing else.
      expect(structuredContent).toBeUndefined();
      const [text, image] = content as unknown as [{ text: string }, Record<string, string>];
      expect(JSON.parse(text.text)).toMatchObject({ success: true, media_type: 'image/png' });
      expect(text.text).not.toContain('base64');
      expect(image).toMatchObject({ type: 'image', mimeType: 'image/png' });
      const png = Buffer.from(image['data'] ?? '', 'base64');
      expect(png.subarray(1, 4).toString()).toBe('PNG');
      await call(connected, 'terminal_keys', { ...id, text: 'q', wait_timeout: '0s' });
      const over = await call(connected, 'terminal_wait', { ...id, text: 'never' });
      expect(over).toMatchObject({ success: false, ended: true, running: false });
      expect(await call(connected, 'terminal_close', id)).toMatchObject({ success: true });
    });
  });
}

describe('terminals for models', () => {
  it('[SC31] a picture in which characters are missing says so', async () => {
    const connected = await http();
    const opened = await call(connected, 'terminal_open', { command: 'cat' });
    const id = { terminal_id: opened['terminal_id'] };
    expect(await call(connected, 'terminal_screenshot', id)).not.toHaveProperty('note');
    await call(connected, 'terminal_keys', { ...id, text: 'no \u{10fffd}' });
    await call(connected, 'terminal_wait', { ...id, text: '\u{10fffd}' });
    const { note } = await call(connected, 'terminal_screenshot', id);
    expect(note).toContain('1 different characters are empty boxes');
    await call(connected, 'terminal_close', id);
  });

  it('[M14] what is wrong with a call is said in words', async () => {
    const connected = await http();
    const id = { terminal_id: 'nobody' };
    await expect(call(connected, 'terminal_run', id)).rejects.toThrow('command is required');
    await expect(call(connected, 'terminal_keys', id)).rejects.toThrow('text or keys is required');
    await expect(call(connected, 'terminal_wait', id)).rejects.toThrow('text, pattern or stable');
    const both = { ...id, text: 'a', pattern: 'b' };
    await expect(call(connected, 'terminal_wait', both)).rejects.toThrow('together');
    for (const name of ['terminal_read', 'terminal_screenshot', 'terminal_close'])
      expect(await call(connected, name, id)).toMatchObject({
        success: false,
        error: expect.stringContaining('nobody') as string,
      });
    const opened = await call(connected, 'terminal_open', { command: 'cat' });
    const cat = { terminal_id: opened['terminal_id'] };
    const untold = await call(connected, 'terminal_run', { ...cat, command: 'hello' });
    expect(untold).toMatchObject({ success: false });
    expect(untold['note']).toContain('terminal_read');
    const keys = await call(connected, 'terminal_keys', { ...cat, keys: ['NoSuchKey'] });
    expect(keys).toMatchObject({ success: false });
    await call(connected, 'terminal_close', cat);
  });

  it('[L31] a program that cannot be run is a failure, with what its shell said', async () => {
    // A host whose clock stands still: the first look at the program lasts until the program has ended.
    const host = await inProcess({ clock: new FakeClock() });
    const tools = toolFunctions(new Toolbox({ connection: apiOver(host, 'me') }));
    const opened = (await tools.terminal_open({ command: 'no-such-program-here' })) as Answer;
    expect(opened).toMatchObject({ success: false });
    expect(opened['error']).toMatch(/^open terminal: .*no-such-program-here.*not found/);
    const id = String(opened['terminal_id']);
    expect(await tools.terminal_close({ terminal_id: id })).toMatchObject({ success: true });
  });

  it('[M14] one owner has no part in the terminal of another', async () => {
    const one = await overHttp(served.server.url, {
      authorization: `Bearer ${served.token}`,
      'holdfast-owner': 'one',
    });
    const opened = await call(one, 'terminal_open', { command: 'cat' });
    const id = { terminal_id: opened['terminal_id'] };
    const two = await overHttp(served.server.url, {
      authorization: `Bearer ${served.token}`,
      'holdfast-owner': 'two',
    });
    for (const [name, input] of [
      ['terminal_read', {}],
      ['terminal_screenshot', {}],
      ['terminal_keys', { text: 'x' }],
      ['terminal_run', { command: 'x' }],
      ['terminal_wait', { text: 'x' }],
      ['terminal_close', {}],
    ] as const)
      expect(await call(two, name, { ...id, ...input })).toMatchObject({ success: false });
    expect(await call(one, 'terminal_read', id)).toMatchObject({ success: true, running: true });
    await call(one, 'terminal_close', id);
  });

  it('[M15] as functions over a host of this program they answer the same', async () => {
    const tools = toolFunctions(new Toolbox({ connection: apiOver(await inProcess(), 'me') }));
    const { terminal_id: id } = (await tools.terminal_open({})) as { terminal_id: string };
    expect(await tools.terminal_run({ terminal_id: id, command: 'echo hi' })).toMatchObject({
      success: true,
      output: 'hi\n',
    });
    expect(await tools.terminal_read({ terminal_id: id })).toMatchObject({
      success: true,
      screen: expect.stringContaining('echo hi') as string,
    });
    expect(await tools.terminal_screenshot({ terminal_id: id })).toMatchObject({
      success: true,
      media_type: 'image/png',
    });
    expect(await tools.terminal_close({ terminal_id: id })).toMatchObject({ success: true });
  });
});
