// The adapters for agent frameworks, called as the frameworks call them. `npm run test:adapters` runs them inside the real ones.

import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { cancelTerminal, terminalUpdates } from '../../src/adapters/acp.ts';
import { holdfastSandbox, holdfastTools } from '../../src/adapters/ai-sdk.ts';
import { holdfastBackend } from '../../src/adapters/deepagents.ts';
import { holdfastShell } from '../../src/adapters/openai-agents.ts';
import { holdfastSandboxClient } from '../../src/adapters/openai-sandbox.ts';
import { connect } from '../../src/client/connect.ts';
import type { Holdfast } from '../../src/client/holdfast.ts';
import type { ProcessHandle } from '../../src/client/process-handle.ts';
import { embed } from '../../src/embed.ts';
import { runningServer } from '../../src/server/server-lock.ts';
import { isAlive, readEntry } from '../../src/system/proc-table.ts';
import { Toolbox } from '../../src/tools/toolbox.ts';
import { firstLine, Running } from '../support/command-line.ts';
import { gate, onCleanup, program, temporaryFolder } from '../support/hosts.ts';
import { homeForStdio } from '../support/mcp-clients.ts';
import { turnsUntil } from '../support/recorder.ts';

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

describe('the sandbox of OpenAI agents', () => {
  /** As the framework's, as far as the adapter uses it. */
  class Manifest {
    readonly root: string = '/workspace';
    readonly entries = {};
    readonly users = [];
    readonly groups = [];

    constructor(given: object) {
      Object.assign(this, given);
    }

    async resolveEnvironment(): Promise<Record<string, string>> {
      return { OF_MANIFEST: 'yes' };
    }
  }

  const clientOf = (keepOnClose = true) =>
    holdfastSandboxClient(
      { Manifest, applyDiff: (text, diff) => text + diff },
      { holdfast, directory, keepOnClose },
    );
  const runningId = (text: string): number =>
    Number(/^Process running with session ID (\d+)$/m.exec(text)?.[1]);

  it('[AD12] answers a command in the words of the framework; what runs on has a number', async () => {
    const session = await clientOf().create();
    const said = await session.execCommand({ cmd: 'echo $OF_MANIFEST; echo err >&2; exit 3' });
    expect(said).toMatch(
      /^Chunk ID: [0-9a-f]{6}\nWall time: \d+\.\d{4} seconds\nProcess exited with code 3\nOutput:\n/,
    );
    expect(said).toContain('yes\n');
    expect(said).toContain('err\n');
    const apart = await session.exec({ cmd: 'echo out; echo err >&2; kill -9 $$', login: false });
    expect(apart).toMatchObject({ stdout: 'out\n', stderr: 'err\n', exitCode: 137 });
    const begun = await session.execCommand({ cmd: 'echo a; cat', yieldTimeMs: 1000 });
    const sessionId = runningId(begun);
    expect(begun.endsWith('Output:\na\n')).toBe(true);
    const typed = await session.writeStdin({ sessionId, chars: 'b\n', yieldTimeMs: 500 });
    expect(typed.endsWith('Output:\nb\n')).toBe(true);
    const nothing = await session.writeStdin({ sessionId, yieldTimeMs: 0 });
    expect(nothing.endsWith('Output:\n')).toBe(true);
    const ended = await session.writeStdin({ sessionId, chars: '\u0003', yieldTimeMs: 20_000 });
    expect(ended).toContain('Process exited with code 130');
    const unknown = await session.writeStdin({ sessionId, chars: 'x' });
    expect(unknown).toContain('Process exited with code 1\n');
    expect(unknown).toContain(`write_stdin failed: session not found: ${sessionId}`);
    await expect(session.exec({ cmd: 'true', runAs: 'bob' })).rejects.toThrow('another user');
  });

  it('[AD12] a Ctrl-C in a terminal is typed, and long output is cut in its middle', async () => {
    const session = await clientOf().create();
    const tty = { cmd: 'stty size; exec cat', tty: true, yieldTimeMs: 1000, login: false };
    const sessionId = runningId(await session.execCommand(tty));
    const ended = await session.writeStdin({ sessionId, chars: '\u0003', yieldTimeMs: 20_000 });
    expect(ended).toContain('Process exited with code 130');
    const cmd = 'seq 100000';
    const long = await session.exec({ cmd, maxOutputTokens: 100, login: false });
    expect(long.originalTokenCount).toBe(Math.ceil(588_895 / 4));
    expect(long.output).toMatch(/^Total output lines: 100000\n\n1\n2\n[^]*\n99999\n100000\n$/);
    expect(Buffer.byteLength(long.output)).toBeLessThanOrEqual(400);
    const [, tokens = ''] = /\.\.\.(\d+) tokens truncated\.\.\./.exec(long.output) ?? [];
    expect(Number(tokens)).toBeGreaterThan(147_000);
  });

  it('[AD13] a session that is resumed from its stored state reaches its commands; sessions are apart', async () => {
    const client = clientOf();
    const session = await client.create();
    const begun = { cmd: 'echo before; read x; echo "got $x"', yieldTimeMs: 1000 };
    const sessionId = runningId(await session.execCommand(begun));
    const { manifest, workspaceReady } = session.state;
    const stored = JSON.stringify(await client.serializeSessionState(session.state));
    await session.close();
    const other = await clientOf().create();
    expect(await other.writeStdin({ sessionId })).toContain('session not found');
    const state = { ...(JSON.parse(stored) as object), manifest, workspaceReady };
    const again = await clientOf().resume(await clientOf().deserializeSessionState(state));
    const said = await again.writeStdin({ sessionId, chars: 'typed\n', yieldTimeMs: 20_000 });
    expect(said).toContain('Process exited with code 0');
    expect(said.endsWith('Output:\ngot typed\n')).toBe(true);
    const mine = { cmd: 'exec sleep 600', yieldTimeMs: 0, login: false };
    await again.execCommand(mine);
    const [running] = await holdfast.list({ state: 'running' });
    await clientOf().delete(again.state);
    expect(isAlive(readEntry(running?.pid ?? 0))).toBe(false);
    const ending = await clientOf(false).create();
    await ending.execCommand(mine);
    await ending.close();
    expect(await holdfast.list({ state: 'running' })).toEqual([]);
  });

  it('[AD13] a session is resumed after its program and the server were killed', async () => {
    const home = homeForStdio();
    const cmd = 'echo before; read x; echo "got $x"; exit 3';
    const agent = new Running([home, directory, cmd], { script: program('sandbox-agent.mjs') });
    const line = await firstLine(agent.child.stdout as NodeJS.ReadableStream);
    const { said, state } = JSON.parse(line) as { said: string; state: object };
    expect(said.endsWith('Output:\nbefore\n')).toBe(true);
    const server = runningServer(home)?.pid ?? 0;
    agent.child.kill('SIGKILL');
    process.kill(server, 'SIGKILL');
    await agent.ended;
    await turnsUntil(() => !isAlive(readEntry(server)));
    const connected = await connect({ home });
    onCleanup(() => connected.close());
    const framework = { Manifest, applyDiff: (text: string) => text };
    const client = holdfastSandboxClient(framework, { holdfast: connected, directory });
    const { state: whole } = await client.create();
    const stored = { ...whole, ...(await client.deserializeSessionState({ ...state })) };
    const session = await client.resume(stored);
    const sessionId = runningId(said);
    const ended = await session.writeStdin({ sessionId, chars: 'typed\n', yieldTimeMs: 20_000 });
    expect(ended).toContain('Process exited with code 3');
    expect(ended.endsWith('Output:\ngot typed\n')).toBe(true);
  });

  it('[AD13] files are those of the host, below the root', async () => {
    const session = await clientOf().create();
    await session.materializeEntry({
      path: 'a b',
      entry: { type: 'dir', children: { "it's": { type: 'file', content: 'text\n' } } },
    });
    expect(readFileSync(join(directory, "a b/it's"), 'utf8')).toBe('text\n');
    expect(await session.listDir({ path: 'a b' })).toEqual([
      { name: "it's", path: "a b/it's", type: 'file' },
    ]);
    const found = ['a b', "a b/it's", 'nope'].map(async (path) => [
      await session.pathExists(path),
      await session.directoryExists(path),
    ]);
    expect(await Promise.all(found)).toEqual([
      [true, true],
      [true, false],
      [false, false],
    ]);
    expect(String(await session.readFile({ path: "a b/it's", maxBytes: 2 }))).toBe('te');
    await session.createEditor().updateFile({ path: "a b/it's", diff: 'more', moveTo: 'moved' });
    expect(readFileSync(join(directory, 'moved'), 'utf8')).toBe('text\nmore');
    await expect(session.viewImage({ path: 'moved' })).rejects.toThrow('Unsupported image format');
    await expect(session.readFile({ path: 'nope' })).rejects.toThrow('not found');
    const mount = { type: 's3_mount' };
    await expect(session.materializeEntry({ path: 'm', entry: mount })).rejects.toThrow('s3_mount');
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
