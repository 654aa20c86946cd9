// The adapters inside the unmodified frameworks, with scripted models. Only where FRAMEWORKS names the folder that has them,
// which `npm run test:adapters` sets.

import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { beforeEach, describe, expect, it } from 'vitest';
import { holdfastSandbox } from '../../src/adapters/ai-sdk.ts';
import { terminalUpdates } from '../../src/adapters/acp.ts';
import { holdfastBackend } from '../../src/adapters/deepagents.ts';
import { holdfastSandbox as mastraSandbox } from '../../src/adapters/mastra.ts';
import { holdfastShell } from '../../src/adapters/openai-agents.ts';
import { holdfastSandboxClient } from '../../src/adapters/openai-sandbox.ts';
import type { Holdfast } from '../../src/client/holdfast.ts';
import { embed } from '../../src/embed.ts';
import { frameworks, loadFramework } from '../support/frameworks.ts';
import { onCleanup, temporaryFolder } from '../support/hosts.ts';

let holdfast: Holdfast;
let directory: string;

beforeEach(async () => {
  directory = temporaryFolder();
  holdfast = await embed({ folder: temporaryFolder() });
  onCleanup(() => holdfast.close());
});

describe.skipIf(frameworks === undefined)('inside the frameworks', () => {
  it('[AD7] a runner of OpenAI agents runs a shell call and tells the model what it printed', async () => {
    const { Agent, Runner, shellTool } = await loadFramework('@openai/agents-core');
    const { ScriptedModel, assistantMessage } = await loadFramework('@openai/agents-core/testing');
    const action = { commands: ['echo from-the-shell; exit 3'] };
    const call = { type: 'shell_call', callId: 'call-1', status: 'completed', action };
    const model = new ScriptedModel([[call], [assistantMessage('done')]]);
    const shell = holdfastShell({ holdfast, directory });
    const agent = new Agent({ name: 'a', model, tools: [shellTool({ shell })] });
    const result = await new Runner({ tracingDisabled: true }).run(agent, 'go');
    expect(result.finalOutput).toBe('done');
    expect(JSON.stringify(result.history)).toContain('from-the-shell');
    expect(JSON.stringify(result.history)).toContain('"exitCode":3');
  });

  it('[AD11] a sandbox agent of OpenAI runs commands, types into one, and patches files', async () => {
    const { Runner, applyDiff } = await loadFramework('@openai/agents-core');
    const { Manifest, SandboxAgent, filesystem, shell } = await loadFramework(
      '@openai/agents-core/sandbox',
    );
    const { ScriptedModel, assistantMessage, functionCall } = await loadFramework(
      '@openai/agents-core/testing',
    );
    const call = (name: string, args: object, callId: string): object[] => [
      functionCall(name, JSON.stringify(args), { callId }),
    ];
    const patch = (operation: object, callId: string): object[] => [
      { type: 'apply_patch_call', callId, status: 'completed', operation },
    ];
    const model = new ScriptedModel([
      call('exec_command', { cmd: 'echo from-$((40+2)); pwd; cat given; exit 3' }, 'c1'),
      call('exec_command', { cmd: 'read x; echo "got $x"', tty: true, yield_time_ms: 100 }, 'c2'),
      call('write_stdin', { session_id: 1, chars: 'typed\n', yield_time_ms: 20_000 }, 'c3'),
      patch({ type: 'create_file', path: 'poem', diff: '+roses are blue\n+violets' }, 'c4'),
      patch(
        { type: 'update_file', path: 'poem', diff: '@@\n-roses are blue\n+roses are red' },
        'c5',
      ),
      patch({ type: 'delete_file', path: 'given' }, 'c6'),
      call('view_image', { path: 'dot.png' }, 'c7'),
      [assistantMessage('done')],
    ]);
    const client = holdfastSandboxClient({ Manifest, applyDiff }, { holdfast, directory });
    const dot = Uint8Array.from(Buffer.from('\x89PNG\r\n\x1a\nrest', 'latin1'));
    const manifest = new Manifest({
      entries: {
        given: { type: 'file', content: 'by the manifest\n' },
        'dot.png': { type: 'file', content: dot },
      },
    });
    const agent = new SandboxAgent({
      name: 'a',
      model,
      capabilities: [shell(), filesystem()],
      defaultManifest: manifest,
    });
    const runner = new Runner({ tracingDisabled: true });
    const result = await runner.run(agent, 'go', { sandbox: { client } });
    expect(result.finalOutput).toBe('done');
    const history = JSON.stringify(result.history);
    expect(history).toContain(`from-42\\n${directory}\\nby the manifest\\n`);
    expect(history).toContain('Process exited with code 3');
    expect(history).toContain('Process running with session ID 1');
    expect(history).toContain('got typed');
    expect(readFileSync(join(directory, 'poem'), 'utf8')).toBe('roses are red\nviolets');
    expect(readdirSync(directory).toSorted()).toEqual(['dot.png', 'poem']);
    expect(history).toContain('image/png');
  });

  it('[AD7] generateText gives the sandbox to a tool', async () => {
    const { generateText, isStepCount, stepCountIs, tool, jsonSchema } = await loadFramework('ai');
    const { MockLanguageModelV4 } = await loadFramework('ai/test');
    const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
    const turns = [
      {
        content: [
          { type: 'tool-call', toolCallId: 'c1', toolName: 'sh', input: '{"command":"echo hi"}' },
        ],
        finishReason: { unified: 'tool-calls', raw: 'x' },
        usage,
        warnings: [],
      },
      {
        content: [{ type: 'text', text: 'done' }],
        finishReason: { unified: 'stop', raw: 'x' },
        usage,
        warnings: [],
      },
    ];
    const model = new MockLanguageModelV4({ doGenerate: turns });
    const sh = tool({
      inputSchema: jsonSchema({ type: 'object', properties: { command: { type: 'string' } } }),
      execute: (
        { command }: { command: string },
        {
          experimental_sandbox: sandbox,
        }: { experimental_sandbox: ReturnType<typeof holdfastSandbox> },
      ) => sandbox.run({ command }),
    });
    const result = await generateText({
      model,
      prompt: 'go',
      tools: { sh },
      stopWhen: (isStepCount ?? stepCountIs)(3),
      experimental_sandbox: holdfastSandbox({ holdfast, directory }),
    });
    expect(result.text).toBe('done');
    expect(JSON.stringify(result.steps)).toContain(String.raw`hi\n`);
  });

  it('[AD7] an agent of deepagents reads, edits, finds and runs through the backend', async () => {
    const { BaseSandbox, createDeepAgent } = await loadFramework('deepagents');
    const { FakeListChatModel } = await loadFramework('@langchain/core/utils/testing');
    const { AIMessage } = await loadFramework('@langchain/core/messages');
    const backend = holdfastBackend(BaseSandbox as typeof Map, {
      holdfast,
      directory,
    }) as unknown as Record<string, (...args: unknown[]) => Promise<Record<string, unknown>>>;
    const path = join(directory, "a b/it's.txt");
    await backend['write']?.(path, 'one\ntwo\nthree\n');
    await backend['edit']?.(path, 'two', 'TWO');
    expect(readFileSync(path, 'utf8')).toBe('one\nTWO\nthree\n');
    expect(JSON.stringify(await backend['read']?.(path, 1, 1))).toContain('TWO');
    expect(JSON.stringify(await backend['ls']?.(join(directory, 'a b')))).toContain("it's.txt");
    expect(JSON.stringify(await backend['grep']?.('TWO', directory))).toContain("it's.txt");
    expect(JSON.stringify(await backend['glob']?.('**/*.txt', directory))).toContain("it's.txt");
    expect(JSON.stringify(await backend['read']?.(join(directory, 'none')))).toMatch(
      /not found|no such/i,
    );
    class Scripted extends (FakeListChatModel as new (options: object) => object) {
      private said = 0;
      bindTools(): this {
        return this;
      }
      async _generate(): Promise<object> {
        const calls = [{ name: 'execute', args: { command: 'echo from-$((40+2))' }, id: 'c1' }];
        const message = new AIMessage(
          this.said === 0 ? { content: '', tool_calls: calls } : { content: 'done' },
        );
        this.said += 1;
        return { generations: [{ text: '', message }] };
      }
    }
    const agent = createDeepAgent({ model: new Scripted({ responses: [''] }), backend });
    const { messages } = await agent.invoke({ messages: [{ role: 'user', content: 'go' }] });
    expect(JSON.stringify(messages)).toContain('from-42');
  });

  it('[AD8] a workspace of Mastra runs commands in the sandbox, with arguments that need quotes', async () => {
    const mastra = await loadFramework('@mastra/core/workspace');
    const sandbox = mastraSandbox(mastra, { holdfast, directory, id: 'one', env: { A: '1' } });
    const said = await sandbox.executeCommand('printf', ['%s|', 'a b', "it's", '$HOME'], {});
    expect(said).toMatchObject({ success: true, exitCode: 0, stdout: "a b|it's|$HOME|" });
    const failed = await sandbox.executeCommand('echo $A; pwd; echo err >&2; exit 3', [], {});
    expect(failed).toMatchObject({ exitCode: 3, stdout: `1\n${directory}\n`, stderr: 'err\n' });
    const late = await sandbox.executeCommand('exec sleep 600', [], { timeout: 100 });
    expect(late).toMatchObject({ success: false, timedOut: true, killed: true, exitCode: 124 });
    await sandbox.writeFiles([{ path: 'x/run', content: '#!/bin/sh\necho ran\n', mode: 0o755 }]);
    expect((await sandbox.executeCommand('./x/run', [], {})).stdout).toBe('ran\n');
    const workspace = new mastra.Workspace({ sandbox });
    await workspace.init();
    const tools = await mastra.createWorkspaceTools(workspace);
    const [, execute] =
      Object.entries(tools).find(([name]) => name.endsWith('execute_command')) ?? [];
    const answer = await (execute as { execute(input: object, context: object): unknown }).execute(
      { command: 'echo by-a-tool' },
      { workspace },
    );
    expect(JSON.stringify(answer)).toContain('by-a-tool');
  });

  it('[AD8] processes of Mastra have input, limits and streams, and are found again by another sandbox', async () => {
    const mastra = await loadFramework('@mastra/core/workspace');
    const one = mastraSandbox(mastra, { holdfast, directory, id: 'same' });
    const cat = await one.processes.spawn('echo ready; cat; echo err >&2; exit 4', {});
    const pieces: string[] = [];
    const again = mastraSandbox(mastra, { holdfast, directory, id: 'same' });
    const found = await again.processes.get(cat.pid);
    const waiting = (found as unknown as { wait(options: object): Promise<object> }).wait({
      onStdout: (data: string) => pieces.push(data),
    });
    await cat.sendStdin('typed\n');
    await found?.closeStdin();
    expect(await waiting).toMatchObject({ exitCode: 4, stdout: 'ready\ntyped\n', stderr: 'err\n' });
    expect(pieces.join('')).toContain('typed\n');
    expect(await again.processes.list()).toMatchObject([
      { pid: cat.pid, running: false, exitCode: 4 },
    ]);
    const third = mastraSandbox(mastra, { holdfast, directory, id: 'same' });
    expect((await third.processes.get(cat.pid))?.stdout).toBe('ready\ntyped\n');
    expect(await third.processes.get('unknown')).toBeUndefined();
    const ignoring = await one.processes.spawn('cat', { stdinMode: 'ignore' });
    expect(await ignoring.wait()).toMatchObject({ exitCode: 0, stdout: '' });
    const limited = await one.processes.spawn('seq 1000', { maxRetainedBytes: 10 });
    expect(await limited.wait()).toMatchObject({
      stdout: '\n999\n1000\n',
      stdoutDroppedBytes: 3883,
    });
    const server = await one.processes.spawn('while read x; do echo "{\\"got\\": $x}"; done', {});
    const { reader, writer } = server as unknown as { reader: Readable; writer: Writable };
    writer.write('1\n');
    const [line] = (await once(reader, 'data')) as [Buffer];
    expect(line.toString()).toBe('{"got": 1}\n');
    await one.destroy();
    expect(await server.wait()).toMatchObject({ exitCode: 137, killed: true });
  });

  it('[AD9] updates of a display terminal are valid in the SDK of ACP', async () => {
    const schemas = await import(
      pathToFileURL(
        join(frameworks ?? '', 'node_modules/@agentclientprotocol/sdk/dist/v2/schema/zod.gen.js'),
      ).href
    );
    const handle = await holdfast.start('echo a; exit 3', { cwd: directory });
    for await (const update of terminalUpdates(handle))
      expect(schemas.zSessionUpdate.parse(update)).toMatchObject({ terminalId: handle.id });
  });
});
