// The adapters for agent frameworks, called as the frameworks call them. `npm run test:adapters` runs them inside the real ones.

import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { cancelTerminal, terminalUpdates } from '../../src/adapters/acp.ts';
import { holdfastSandbox, holdfastTools } from '../../src/adapters/ai-sdk.ts';
import { holdfastBackend } from '../../src/adapters/deepagents.ts';
import { holdfastShell } from '../../src/adapters/openai-agents.ts';
import type { Holdfast } from '../../src/client/holdfast.ts';
import type { ProcessHandle } from '../../src/client/process-handle.ts';
import { embed } from '../../src/embed.ts';
import { isAlive, readEntry } from '../../src/system/proc-table.ts';
import { Toolbox } from '../../src/tools/toolbox.ts';
import { gate, onCleanup, temporaryFolder } from '../support/hosts.ts';

let holdfast: Holdfast;
let directory: string;

beforeEach(async () => {
  directory = temporaryFolder();
  holdfast = await embed({ folder: temporaryFolder() });
  onCleanup(() => holdfast.close());
});

describe('the shell of OpenAI agents', () => {
  it('[AD1] runs the commands in order, with streams apart, and tells how each ended', async () => {
    const shell = holdfastShell({ holdfast, directory, env: { WORD: 'hi' } });
    const commands = ['echo $WORD; echo err >&2; exit 3', 'pwd', 'kill -9 $$', 'no-such-program'];
    const { output, providerData } = await shell.run({ commands });
    expect(output.slice(0, 2)).toEqual([
      { stdout: 'hi\n', stderr: 'err\n', outcome: { type: 'exit', exitCode: 3 } },
      { stdout: `${directory}\n`, stderr: '', outcome: { type: 'exit', exitCode: 0 } },
    ]);
    expect(output[2]).toMatchObject({
      stderr: '[holdfast: ended by SIGKILL]\n',
      outcome: { type: 'exit', exitCode: null },
    });
    expect(output[3]?.outcome).toEqual({ type: 'exit', exitCode: 127 });
    expect(providerData.process_ids).toHaveLength(4);
    const gone = await holdfastShell({ holdfast, directory: '/nope' }).run({ commands: ['true'] });
    expect(gone.output[0]).toMatchObject({ outcome: { exitCode: 127 } });
  });

  it('[AD2] kills nothing when the time is over, and names what runs; long output keeps both ends', async () => {
    const shell = holdfastShell({ holdfast, directory });
    const { output, providerData } = await shell.run({
      commands: ['echo a; exec sleep 600'],
      timeoutMs: 1000,
    });
    const [id = ''] = providerData.process_ids;
    expect(output[0]).toEqual({
      stdout: 'a\n',
      stderr: `[holdfast: still running as ${id}; it was not killed]\n`,
      outcome: { type: 'timeout' },
    });
    expect((await (await holdfast.get(id)).status()).state).toBe('running');
    const long = await shell.run({ commands: ['seq 200000'], maxOutputLength: 1000 });
    const { stdout = '' } = long.output[0] ?? {};
    expect(stdout).toMatch(/^1\n2\n/);
    expect(stdout.endsWith('\n200000\n')).toBe(true);
    expect(stdout).toContain(`[${1_288_895 - 1000} characters are missing here]`);
    expect(long.maxOutputLength).toBe(1000);
  });
});

describe('the sandbox of the AI SDK', () => {
  it('[AD3] runs commands; an abort ends them with all that they started', async () => {
    mkdirSync(join(directory, 'sub'));
    const sandbox = holdfastSandbox({ holdfast, directory });
    expect(
      await sandbox.run({
        command: 'echo $A; pwd; echo err >&2; exit 3',
        env: { A: '1' },
        workingDirectory: 'sub',
      }),
    ).toEqual({ exitCode: 3, stdout: `1\n${directory}/sub\n`, stderr: 'err\n' });
    const abort = new AbortController();
    const child = await sandbox.spawn({
      command: 'setsid sleep 600 & echo $!; wait',
      abortSignal: abort.signal,
    });
    const { value } = await child.stdout.getReader().read();
    const pid = Number(Buffer.from(value ?? []).toString());
    const waiting = child.wait();
    abort.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    expect([child.pid, pid].map((each) => isAlive(readEntry(each)))).toEqual([false, false]);
    expect('stdin' in child).toBe(false);
    const killed = await sandbox.spawn({ command: 'exec sleep 600' });
    await Promise.all([killed.kill(), killed.kill()]);
    expect(await killed.wait()).toEqual({ exitCode: 137 });
  });

  it('[AD3] feeds a command its input and gives its bytes unchanged', async () => {
    const sandbox = holdfastSandbox({ holdfast, directory });
    const cat = await sandbox.spawn({ command: 'cat', stdin: true });
    const writer = cat.stdin?.getWriter();
    await writer?.write(Uint8Array.of(0xff, 0, 10));
    await writer?.close();
    const bytes = new Uint8Array(await new Response(cat.stdout).arrayBuffer());
    expect([[...bytes], await cat.wait()]).toEqual([[0xff, 0, 10], { exitCode: 0 }]);
  });

  it('[AD4] reads, writes, lists and deletes files of the host', async () => {
    const sandbox = holdfastSandbox({ holdfast, directory });
    await sandbox.writeTextFile({ path: "a b/it's.txt", content: '1\n2\n3\n4\n5\n' });
    expect(readFileSync(join(directory, "a b/it's.txt"), 'utf8')).toBe('1\n2\n3\n4\n5\n');
    const path = "a b/it's.txt";
    expect(await sandbox.readTextFile({ path, startLine: 2, endLine: 3 })).toBe('2\n3');
    expect(await sandbox.readTextFile({ path, startLine: 20 })).toBe('');
    expect(await sandbox.readTextFile({ path: 'nope' })).toBe(null);
    await sandbox.writeBinaryFile({ path: 'bytes', content: Uint8Array.of(0, 255) });
    expect([...((await sandbox.readBinaryFile({ path: 'bytes' })) ?? [])]).toEqual([0, 255]);
    await expect(sandbox.writeTextFile({ path: 'a b', content: '' })).rejects.toThrow('irectory');
    symlinkSync('bytes', join(directory, 'link'));
    expect(await sandbox.stat({ path: 'link' })).toEqual({ type: 'file', size: 2 });
    expect(await sandbox.stat({ path: 'nope' })).toBe(null);
    expect(await sandbox.listDirectory({ path: '.' })).toEqual([
      { name: 'a b', type: 'directory' },
      { name: 'bytes', type: 'file' },
      { name: 'link', type: 'symlink' },
    ]);
    await expect(sandbox.listDirectory({ path: 'bytes' })).rejects.toThrow('not a directory');
    expect(await sandbox.deleteFile({ path: 'link' })).toBe(true);
    expect(await sandbox.deleteFile({ path: 'link' })).toBe(false);
    await expect(sandbox.deleteFile({ path: 'a b' })).rejects.toThrow('irectory');
  });

  it('[AD5] has every tool for models; the same call id runs once', async () => {
    const toolbox = new Toolbox({ connection: holdfast.api, directory });
    const tools = holdfastTools(toolbox, (schema: unknown) => schema);
    expect(Object.keys(tools)).toHaveLength(14);
    const run = () => tools['execute']?.execute({ command: 'echo $$' }, { toolCallId: 'one' });
    const [first, again] = [await run(), await run()];
    expect(again?.['output']).toBe(first?.['output']);
    expect(await tools['execute']?.execute({}, { toolCallId: 'two' })).toMatchObject({
      success: false,
    });
  });
});

describe('the backend of deepagents', () => {
  it('[AD6] gives exact merged output, and says what is wrong with each file', async () => {
    const backend = holdfastBackend(Map, { holdfast, directory });
    expect(await backend.execute('echo out; echo err >&2; exit 3')).toEqual({
      output: 'out\nerr\n',
      exitCode: 3,
      truncated: false,
    });
    const { output } = await backend.execute('seq 500000');
    expect(output.length).toBe(3_388_895);
    const hasty = holdfastBackend(Map, { holdfast, directory, timeoutMs: 100 });
    expect(await hasty.execute('exec sleep 600')).toMatchObject({ exitCode: null });
    writeFileSync(join(directory, 'there'), 'x');
    mkdirSync(join(directory, 'folder'));
    const bytes = Uint8Array.of(1);
    expect(
      await backend.uploadFiles([
        ['new/file', bytes],
        ['folder', bytes],
      ]),
    ).toEqual([
      { path: 'new/file', error: null },
      { path: 'folder', error: 'is_directory' },
    ]);
    expect(await backend.downloadFiles(['there', 'nope', 'folder'])).toEqual([
      { path: 'there', content: Buffer.from('x'), error: null },
      { path: 'nope', content: null, error: 'file_not_found' },
      { path: 'folder', content: null, error: 'is_directory' },
    ]);
  });
});

describe('a display terminal of ACP', () => {
  class RequestError extends Error {
    readonly code: number;

    constructor(code: number, message: string) {
      super(message);
      this.code = code;
    }
  }

  async function updatesOf(handle: ProcessHandle) {
    const all: Record<string, unknown>[] = [];
    for await (const update of terminalUpdates(handle)) all.push({ ...update });
    return all;
  }

  it('[AD9] is rebuilt exactly from the snapshot and the chunks, also after its end', async () => {
    const { wait, open } = gate();
    const handle = await holdfast.start(`printf 'a\\377'; ${wait}; printf 'b\\n'; exit 3`, {
      cwd: directory,
    });
    await handle.waitForLog('a');
    const updates = terminalUpdates(handle);
    const { value: first } = await updates.next();
    open();
    const rest: Record<string, unknown>[] = [];
    for await (const update of updates) rest.push({ ...update });
    const { output, ...about } = first as { output: { data: string } };
    expect(about).toMatchObject({
      sessionUpdate: 'terminal_update',
      terminalId: handle.id,
      cwd: directory,
      capabilities: { cancel: {} },
    });
    const chunks = rest.filter((each) => each['sessionUpdate'] === 'terminal_output_chunk');
    const bytes = [output.data, ...chunks.map(({ data }) => String(data))].map((data) =>
      Buffer.from(data, 'base64'),
    );
    expect(Buffer.concat(bytes)).toEqual(Buffer.from('a\xffb\n', 'latin1'));
    expect(rest.at(-1)).toMatchObject({ exitStatus: { exitCode: 3 }, capabilities: {} });
    const [again] = await updatesOf(handle);
    expect(again).toMatchObject({ output: { data: Buffer.concat(bytes).toString('base64') } });
  });

  it('[AD9] can be cancelled while it runs; one that is unknown or has ended is refused', async () => {
    const handle = await holdfast.start('exec sleep 600', { cwd: directory });
    const cancel = (terminalId: string) =>
      cancelTerminal({ holdfast, RequestError }, { terminalId });
    expect(await cancel(handle.id)).toEqual({});
    expect((await updatesOf(handle)).at(-1)).toMatchObject({ exitStatus: { signal: 'SIGTERM' } });
    for (const id of [handle.id, 'unknown'])
      await expect(cancel(id)).rejects.toMatchObject({ code: -32602 });
  });
});
