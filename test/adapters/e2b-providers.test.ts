// The E2B providers of agent frameworks, unmodified, through /e2b. Only where FRAMEWORKS names the folder that has them, which
// `npm run test:adapters` sets.

import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { serveE2b, type E2bServed } from '../support/e2b-client.ts';
import { frameworks, loadFramework } from '../support/frameworks.ts';

describe.skipIf(frameworks === undefined)('E2B providers', () => {
  let served: E2bServed;

  beforeEach(async () => {
    served = await serveE2b();
    const { apiUrl, sandboxUrl, apiKey } = served.options;
    Object.assign(process.env, {
      E2B_API_URL: apiUrl,
      E2B_SANDBOX_URL: sandboxUrl,
      E2B_API_KEY: apiKey,
    });
    return () => served.stop();
  });

  it('[AD10] of OpenAI agents: a sandbox agent with a scripted model runs a command', async () => {
    const { Runner } = await loadFramework('@openai/agents-core');
    const { Manifest, SandboxAgent, shell } = await loadFramework('@openai/agents-core/sandbox');
    const { ScriptedModel, assistantMessage, functionCall } = await loadFramework(
      '@openai/agents-core/testing',
    );
    const { E2BSandboxClient } = await loadFramework('@openai/agents-extensions/sandbox/e2b');
    const client = new E2BSandboxClient();
    const manifest = new Manifest({ root: join(served.userHome, 'work') });
    const call = functionCall(
      'exec_command',
      JSON.stringify({ cmd: 'echo from-$((40+2)); pwd; exit 3' }),
      { callId: 'c1' },
    );
    const model = new ScriptedModel([[call], [assistantMessage('done')]]);
    const agent = new SandboxAgent({ name: 'a', model, capabilities: [shell()] });
    const session = await client.create({ manifest });
    const runner = new Runner({ tracingDisabled: true });
    const result = await runner.run(agent, 'go', { sandbox: { session } });
    expect(result.finalOutput).toBe('done');
    const history = JSON.stringify(result.history);
    expect(history).toContain('from-42');
    expect(history).toContain(join(served.userHome, 'work'));
    expect(history).toContain('Process exited with code 3');
    await session.close();
  });

  it('[AD10] of Mastra: a sandbox runs commands and processes, and is destroyed', async () => {
    const { E2BSandbox } = await loadFramework('@mastra/e2b');
    const sandbox = new E2BSandbox({ timeout: 60_000 });
    const said = await sandbox.executeCommand('echo hi; echo err >&2', [], {});
    expect(said).toMatchObject({ success: true, exitCode: 0, stdout: 'hi\n', stderr: 'err\n' });
    const cat = await sandbox.processes.spawn('read x; echo "got $x"; exit 3');
    await cat.sendStdin('typed\n');
    expect(await cat.wait()).toMatchObject({ exitCode: 3 });
    expect(cat.stdout).toContain('got typed\n');
    await sandbox._destroy();
    expect(sandbox.status).toBe('destroyed');
  });
});
