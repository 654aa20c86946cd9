// What a script for agent-tty reads out of answers and files: settings, names of runs, what inspect says, the second skill.
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stopKeeper } from '../support/hosts.ts';
import { main, runTty, shim, type Reported } from '../support/tty-commands.ts';

let base: string;
let home: string;

beforeAll(() => {
  base = mkdtempSync(join(tmpdir(), 'holdfast-scripts-'));
  chmodSync(base, 0o755);
  home = join(base, 'holdfast');
});
afterAll(async () => {
  await stopKeeper(home);
  rmSync(base, { recursive: true, force: true });
});

const peer = (args: string[], env: NodeJS.ProcessEnv = {}): Promise<Reported> =>
  runTty(shim, args, { AGENT_TTY_HOME: base, HOME: base, SHELL: '/bin/bash', ...env });
const answer = async (command: string, ...args: string[]): Promise<Record<string, unknown>> => {
  const { envelope, stderr } = await peer(['--json', command, ...args]);
  if (!envelope?.ok) throw new Error(JSON.stringify(envelope) + stderr);
  return envelope.result;
};
const create = async (...args: string[]): Promise<string> =>
  String((await answer('create', ...args))['sessionId']);
const configure = (content: string): void => writeFileSync(join(base, 'config.json'), content);

interface Event {
  readonly seq: number;
  readonly type: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

async function eventsOf(id: string): Promise<Event[]> {
  const out = join(base, `${id}.jsonl`);
  await answer('record', 'export', id, '--format', 'events', '--out', out);
  return readFileSync(out, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Event);
}

function printed(events: readonly Event[]): string {
  const output = events.filter(({ type }) => type === 'output');
  return output.map(({ payload }) => String(payload['data'])).join('');
}

describe('config.json', () => {
  it('[TM125] sets what no flag and no variable says', async () => {
    configure(
      JSON.stringify({
        logLevel: 'warn',
        defaultProfile: 'reference-light',
        defaultRenderer: 'ghostty-web',
        defaultShell: '/bin/sh',
        defaultTerm: 'vt100',
        defaultCols: 70,
        defaultRows: 20,
        idleTimeoutMs: 90_000,
      }),
    );
    try {
      const made = await answer('create');
      expect(made).toMatchObject({ cols: 70, rows: 20, shell: '/bin/sh', idleTimeoutMs: 90_000 });
      const id = String(made['sessionId']);
      expect(await answer('run', id, 'echo [$TERM]')).toMatchObject({ output: '[vt100]\n' });
      const { session } = await answer('inspect', id);
      expect(session).toMatchObject({ term: 'vt100', idleTimeoutMs: 90_000 });
      expect(await answer('screenshot', id)).toMatchObject({ profileName: 'reference-light' });
      const flags = ['--cols', '90', '--shell', '/bin/bash', '--idle-timeout-ms', '0'];
      const other = await answer('create', ...flags);
      expect(other).toMatchObject({ cols: 90, rows: 20, shell: '/bin/bash' });
      expect(other).not.toHaveProperty('idleTimeoutMs');
    } finally {
      rmSync(join(base, 'config.json'));
    }
  });

  it.each([
    ['{"logLevel":', 'contains invalid JSON'],
    ['[]', 'JSON object'],
    ['{"logLevel":"trace"}', 'logLevel'],
    ['{"defaultRows":0}', 'defaultRows'],
    ['{"defaultCols":80.5}', 'defaultCols'],
    ['{"idleTimeoutMs":-1}', 'idleTimeoutMs'],
    ['{"constructor":1}', 'constructor'],
    ['{"extra":true}', 'extra'],
  ])('[TM125] %s is reported before anything is done, with exit code 1', async (content, word) => {
    configure(content);
    try {
      const reported = await peer(['list', '--json']);
      expect(reported.code).toBe(1);
      expect(reported.envelope.error.message).toContain(word);
      expect((await peer(['list'])).stderr).toContain('config.json');
    } finally {
      rmSync(join(base, 'config.json'));
    }
  });
});

describe('a run', () => {
  it('[TM126] has the name that scripts know, in its answer and in the events', async () => {
    const id = await create('--', '/bin/bash');
    const done = await answer('run', id, 'echo proof');
    expect(done['marker']).toMatch(/^__AT_MARKER_[0-9a-f]{32}__$/);
    const late = await answer('run', id, 'sleep 300', '--timeout', '200');
    expect(late).toMatchObject({ accepted: true, completed: false, timedOut: true });
    const events = await eventsOf(id);
    const ends = events.filter(({ type }) => type === 'run_complete');
    expect(ends).toMatchObject([{ payload: { marker: done['marker'] } }]);
    const begun = events.find(({ seq }) => seq === ends[0]?.payload['inputRunSeq']);
    expect(begun).toMatchObject({ type: 'input_run', payload: { marker: done['marker'] } });
    expect(printed(events)).not.toMatch(/AT_MARKER|printf|\[1A|\[2K/);
  });

  it('[TM126] without echo leaves nothing of the sentinel, and later output is whole', async () => {
    const id = await create('--', '/bin/bash', '--noprofile', '--norc');
    await answer('run', id, 'stty -echo');
    expect(await answer('run', id, 'echo one; echo two')).toMatchObject({ completed: true });
    const text = printed(await eventsOf(id));
    expect(text).toContain('two');
    expect(text).not.toMatch(/AT_MARKER|printf|\[1A|\[2K/);
  });
});

describe('flags of every command', () => {
  it('[TM127] say what they take', async () => {
    const words: [string[], string][] = [
      [['--log-level', 'loud'], 'Log level must be one of debug, info, warn, or error.'],
      [['--home', 'relative'], '--home must be an absolute path.'],
      [['--renderer', 'none'], 'Renderer must be one of: ghostty-web, libghostty-vt.'],
      [['--timeout-ms', 'soon'], '--timeout-ms must be a positive number of milliseconds.'],
    ];
    for (const [flags, message] of words) {
      const { code, envelope } = await peer([...flags, 'version', '--json']);
      expect([code, envelope.error.message]).toEqual([2, message]);
    }
    const { code } = await peer(['list'], { AGENT_TTY_RENDERER: 'none' });
    expect(code).toBe(2);
  });

  it('[TM127] with debug one line on stderr says where the command works', async () => {
    const reported = await peer(['--log-level', 'debug', 'version', '--json']);
    expect(reported.stderr).toContain(`[agent-tty] debug: resolved command context`);
    expect(reported.stderr).toContain(home);
    expect(reported.envelope.ok).toBe(true);
    expect((await peer(['version'], { AGENT_TTY_LOG_LEVEL: 'debug' })).stderr).toContain('debug');
    expect((await peer(['version'])).stderr).toBe('');
  });

  it.each([
    ['skill', '(Did you mean skills?)'],
    ['lst', '(Did you mean list?)'],
    ['record', 'record export'],
  ])('[TM128] %s is answered with what was probably meant', async (word, hint) => {
    expect(await peer([word])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining(hint) as string,
    });
    const own = await runTty(main, ['tty', word], { HOLDFAST_HOME: home });
    expect(own.stderr).toContain(hint);
  });

  it.each([
    [['run'], 'run: missing argument ID'],
    [['send-keys', 'x'], 'send-keys: missing argument KEY...'],
    [['run', 'x', 'y', 'z'], 'run: unexpected argument "z"'],
    [['list', '--al'], 'list: unknown option --al; did you mean --all?'],
    [['run', 'x', 'y', '--timeout'], 'run: --timeout needs a value'],
    [['wait', 'x', '--cursor-col', '-1'], '--cursor-col "-1" is not a non-negative integer'],
    [['home', '--all', 'forgt', 'x'], "unknown command 'home forgt' (Did you mean home forget?)"],
  ])('[TM134] %j names the word that is missing or wrong', async (args, problem) => {
    expect(await peer(args)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining(problem) as string,
    });
  });

  it('[TM134] an option takes the word after it, also when that begins with a dash', async () => {
    const id = await create('--', 'sh', '-c', 'echo --json; cat');
    expect(await answer('wait', id, '--text', '--json')).toMatchObject({ matched: true });
  });
});

describe('inspect', () => {
  it('[TM129] says how a screen would be made, and which files there are', async () => {
    const id = await create('--', 'sh', '-c', 'echo here; cat');
    await answer('wait', id, '--text', 'here');
    await answer('snapshot', id);
    const shot = await answer('screenshot', id, '--profile', 'reference-light');
    const seen = (await answer('inspect', id)) as { artifacts: { entries: unknown[] } };
    expect(seen).toMatchObject({
      usedOfflineReplay: false,
      rendererRuntime: { mode: 'live-host', status: 'healthy', profile: 'reference-dark' },
      artifacts: { total: 2, byKind: { snapshot: 1, screenshot: 1 }, health: 'healthy' },
    });
    expect(seen.artifacts.entries).toMatchObject([
      { kind: 'snapshot', metadata: { format: 'structured' } },
      {
        kind: 'screenshot',
        metadata: { profileName: 'reference-light', pngSizeBytes: shot['pngSizeBytes'] },
      },
    ]);
    rmSync(String(shot['artifactPath']));
    expect(await answer('inspect', id)).toMatchObject({
      artifacts: { missingCount: 1, health: 'degraded', missing: [{ kind: 'screenshot' }] },
    });
    await answer('destroy', id);
    expect(await answer('inspect', id)).toMatchObject({
      usedOfflineReplay: false,
      rendererRuntime: {
        mode: 'offline-replay',
        status: 'fallback',
        reason: 'session-not-running',
      },
    });
  });

  it('[TM129] of a session that was lost with its keeper says that it is shown from its record', async () => {
    const id = await create('--', 'sh', '-c', 'echo here; cat');
    await answer('wait', id, '--text', 'here');
    const { session } = (await answer('inspect', id)) as { session: { hostPid: number } };
    process.kill(session.hostPid, 'SIGKILL');
    const lost = await answer('inspect', id);
    expect(lost).toMatchObject({
      session: {
        status: 'failed',
        failureOrigin: 'host-death',
        failureReason: expect.stringContaining('host process died unexpectedly') as string,
        hostPid: null,
        childPid: null,
      },
      usedOfflineReplay: true,
      rendererRuntime: { mode: 'offline-replay', status: 'fallback', reason: 'host-unreachable' },
    });
    const { failureReason } = lost['session'] as { failureReason: string };
    expect(failureReason, '[TM151]').toContain(`pid ${session.hostPid}`);
    const { sessions } = (await answer('list', '--all')) as { sessions: { pid: unknown }[] };
    expect(sessions.find((each) => 'sessionId' in each && each.sessionId === id)?.pid).toBeNull();
    expect(await answer('wait', id, '--screen-stable-ms', '1000')).toMatchObject({
      matched: false,
      timedOut: false,
      screenHash: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
    });
  });
});
