// The tools as a model calls them, over a host in this program. The numbers in the names are those of the peer's checks.

import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Api } from '../../src/client/api.ts';
import { apiOver } from '../support/in-process-api.ts';
import { Host } from '../../src/host/host.ts';
import {
  anthropicTools,
  openAiResponsesTools,
  openAiTools,
  toolDefinitions,
  type ToolName,
} from '../../src/tools/definitions.ts';
import { parseDuration } from '../../src/tools/duration.ts';
import { dumpsFiles, asksForInput } from '../../src/tools/notes.ts';
import type { ToolCall } from '../../src/tools/tool-context.ts';
import { Toolbox, toolFunctions, type ToolboxOptions } from '../../src/tools/toolbox.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { broken, withFaults } from '../support/faulty-api.ts';
import { gate, inProcess, onCleanup, program, temporaryFolder } from '../support/hosts.ts';
import { faults, type Schema } from '../support/json-schema.ts';

type Answer = Record<string, unknown> & {
  output?: string;
  note?: string;
  error?: string;
  background_process_id?: string;
  process_id?: string;
};

let api: Api;

beforeEach(async () => {
  api = apiOver(await inProcess(), 'chat-1');
});

function toolbox(options: ToolboxOptions = {}): Toolbox {
  return new Toolbox({ connection: api, ...options });
}

/** The answer, found to be as the tool's output schema says. */
async function ask(
  name: ToolName,
  input: Record<string, unknown>,
  { box = toolbox(), call }: { box?: Toolbox; call?: ToolCall } = {},
): Promise<Answer> {
  const answer = await box.call(name, input, call);
  if (answer.isError) throw new Error(`tool error: ${answer.text}`);
  const schema = toolDefinitions.find((row) => row.name === name)?.outputSchema as Schema;
  expect(faults(answer.result, schema, schema)).toEqual([]);
  return answer.result;
}

async function toolError(name: string, input: unknown, box = toolbox()): Promise<string> {
  const answer = await box.call(name, input);
  if (!answer.isError) throw new Error(`no tool error but ${JSON.stringify(answer.result)}`);
  return answer.text;
}

const idOf = ({ background_process_id: id }: Answer): string => id ?? '';

describe('execute', () => {
  it('[L5] 65: its schema asks for a command for "sh -c" and knows what is shown alongside it', () => {
    const row = toolDefinitions.find(({ name }) => name === 'execute');
    const schema = row?.inputSchema as { required: string[]; properties: Record<string, Schema> };
    expect(schema.required).toEqual(['command']);
    expect(schema.properties['command']?.['description']).toContain('sh -c');
    expect(schema.properties['model_intent']).toMatchObject({
      type: 'string',
      description: expect.stringContaining('alongside the command') as string,
    });
    for (const each of toolDefinitions) expect(each.description.length).toBeGreaterThan(40);
  });

  it('[L5] 66: what is missing or wrong is a tool error in words', async () => {
    expect(await toolError('execute', { command: '' })).toBe('command is required');
    expect(await toolError('execute', {})).toBe('command is required');
    expect(await toolError('execute', null)).toBe('command is required');
    expect(await toolError('process_output', {})).toBe('process_id is required');
    expect(await toolError('process_signal', { process_id: 'x', signal: 'stop' })).toBe(
      'signal must be "terminate" or "kill"',
    );
    expect(await toolError('execute', { command: 'true', timeout: 'soon' })).toMatch(
      /^invalid timeout "soon": /,
    );
    expect(await toolError('process_output', { process_id: 'x', wait_timeout: '1y' })).toMatch(
      /^invalid wait_timeout "1y": /,
    );
    expect(await toolError('process_write', { process_id: 'x' })).toContain('is required');
    expect(await toolError('nothing', {})).toBe('there is no tool "nothing"');
  });

  it('[L27] an argument that there is not is refused with those that there are; what models mean is taken', async () => {
    expect(await toolError('execute', { command: 'ls', dir: '/' })).toBe(
      'there is no argument "dir": execute takes command, model_intent, timeout, workdir, run_in_background, stdin, tty, shell',
    );
    expect(await toolError('process_list', { cwd: '/' })).toContain('there is no argument "cwd"');
    expect(await toolError('process_wait', { process_ids: 'x', timeout: '1y' })).toMatch(
      /^invalid wait_timeout "1y": /,
    );
    expect(await toolError('process_signal', { process_id: 'x', signal: 'HUP' })).toBe(
      'signal must be "terminate" or "kill"',
    );
    expect(await toolError('execute', { command: 'pwd', cwd: '/', workdir: '/tmp' })).toContain(
      'workdir is given twice',
    );
    for (const name of ['cwd', 'working_directory'])
      expect((await ask('execute', { command: 'pwd', [name]: '/' })).output).toBe('/\n');
    const { process_id: id } = await ask('execute', { command: 'true' });
    expect(await ask('process_wait', { process_ids: id })).toMatchObject({ success: true });
    for (const { inputSchema } of toolDefinitions)
      expect(inputSchema['additionalProperties']).toBe(false);
  });

  it('[L28] what was left out is named once more at the end of the answer', async () => {
    const box = toolbox({ maxOutputBytes: 2000 });
    const answer = await ask('execute', { command: 'seq 1 20000', timeout: '30s' }, { box });
    const { omitted_offset: offset } = answer['truncated'] as { omitted_offset: number };
    const fetch = `process_output {"process_id":"${answer.process_id}","offset":${offset}}`;
    expect(answer.note?.endsWith(`The output was truncated: ${fetch} fetches the rest.`)).toBe(
      true,
    );
    expect(Object.keys(answer).at(-1)).toBe('note');
    const { process } = await api.start({ command: 'seq 1 20000' });
    const waited = await ask('process_wait', { process_ids: [process.id] }, { box });
    expect(waited.note).toContain(`process_output {"process_id":"${process.id}","offset":`);
  });

  it('[L29] notes are whole sentences, and a command without its "&" has one', async () => {
    const answer = await ask('execute', { command: 'sleep 1000 &' });
    expect(answer.note).toBe(
      'It runs in the background without the "&"; process_wait can wait for it.',
    );
    const box = toolbox();
    const look = (): Promise<Answer> =>
      ask(
        'process_output',
        { process_id: idOf(answer), wait_timeout: '0s', new_only: true },
        { box },
      );
    await look();
    await look();
    expect((await look()).note).toMatch(/^process is still running\. No new output/);
  });

  it('[L6] 67 70: a trailing "&" is taken off and means the background', async () => {
    for (const [command, run] of [
      ['sleep 1000 &', 'sleep 1000'],
      ['true && sleep 1000 &', 'true && sleep 1000'],
      ['sleep 1000 & # serves', 'sleep 1000'],
    ] as const) {
      const answer = await ask('execute', { command });
      expect(answer).toMatchObject({ success: true, backgrounded: true, running: true });
      expect((await api.get(idOf(answer))).command).toBe(run);
    }
  });

  it('[L6] 68 69 71: other commands are left as they are and waited for', async () => {
    for (const [command, code] of [
      ['true &&', 2],
      ['echo x |&', 2],
      ['echo x', 0],
    ] as const) {
      const answer = await ask('execute', { command });
      expect(answer).not.toHaveProperty('background_process_id');
      expect(answer).toMatchObject({ exit_code: code, running: false });
      expect((await api.get(answer.process_id ?? '')).command).toBe(command);
    }
  });

  it('[L6] 72: asked to run in the background, a command is left as it is', async () => {
    const answer = await ask('execute', { command: 'sleep 1000 &', run_in_background: true });
    expect(answer).toMatchObject({ success: true, backgrounded: true });
    expect((await api.get(idOf(answer))).command).toBe('sleep 1000 &');
  });

  it('[L6] a process that an inner "&" leaves behind stays listed and can be ended', async () => {
    const box = toolbox();
    const answer = await ask('execute', { command: 'sleep 1000 & echo started' }, { box });
    expect(answer).toMatchObject({ success: true, exit_code: 0, output: 'started\n' });
    expect(answer.note).toContain('still running');
    const id = idOf(answer);
    const { processes } = (await ask('process_list', {}, { box })) as unknown as {
      processes: Record<string, unknown>[];
    };
    expect(processes[0]).toMatchObject({ id, running: false, descendants_alive: true });
    const ended = await ask('process_signal', { process_id: id, signal: 'kill' }, { box });
    expect(ended).toEqual({
      success: true,
      message: `signal "kill" sent to process ${id}`,
      running: false,
      exit_code: 0,
    });
    expect((await api.wait({ waits: [{ id, for: [{ kind: 'settled' }] }] })).timedOut).toBe(false);
  });

  it('[L7] 73: success is exit code 0 with its output, in an environment in which nothing asks', async () => {
    const answer = await ask('execute', { command: 'echo hello; env' });
    expect(answer).toMatchObject({ success: true, exit_code: 0 });
    expect(answer).not.toHaveProperty('background_process_id');
    expect(answer.output).toMatch(/^hello\n/);
    const editors = 'GIT_EDITOR=true GIT_SEQUENCE_EDITOR=true EDITOR=true VISUAL=true';
    const plain = 'GIT_TERMINAL_PROMPT=0 NO_COLOR=1 TERM=dumb PAGER=cat GIT_PAGER=cat';
    for (const variable of `CODER_CHAT_AGENT=true ${editors} ${plain}`.split(' '))
      expect(answer.output).toContain(`${variable}\n`);
    expect(answer.output).not.toContain('AGENT_BROWSER_SESSION');
    const box = toolbox({ browserSession: 'chat-7' });
    const reported = await ask('execute', { command: 'echo $AGENT_BROWSER_SESSION' }, { box });
    expect(reported.output).toBe('chat-7\n');
  });

  it('[L43] variables of one call go before those of the toolbox, not before those that keep commands from asking', async () => {
    const box = toolbox({ env: { TURN: 'none', KEPT: 'yes' } });
    const command = 'echo $TURN $KEPT $PAGER';
    const call = { env: { TURN: '7', PAGER: 'less' } };
    expect((await ask('execute', { command }, { box, call })).output).toBe('7 yes cat\n');
    expect((await ask('execute', { command }, { box })).output).toBe('none yes cat\n');
  });

  it('[L7] 74: the intent is kept for people and changes nothing', async () => {
    const answer = await ask('execute', { command: 'echo $0', model_intent: 'Looking around' });
    expect(answer.output).toBe('sh\n');
    expect(JSON.stringify(answer)).not.toContain('Looking');
    const { processes } = (await ask('process_list', {})) as unknown as {
      processes: Record<string, unknown>[];
    };
    expect(processes[0]).toMatchObject({ intent: 'Looking around', command: 'echo $0' });
  });

  it('[L7] 75: a failure has its code and its output; without a code there is a signal', async () => {
    expect(await ask('execute', { command: 'echo no; exit 42' })).toMatchObject({
      success: false,
      exit_code: 42,
      output: 'no\n',
      running: false,
    });
    const killed = await ask('execute', { command: 'kill -9 $$' });
    expect(killed).toMatchObject({ success: false, signal: 'SIGKILL', running: false });
    expect(killed).not.toHaveProperty('exit_code');
    expect(killed.error).toContain('ended by SIGKILL');
  });

  it('[L7] 76: in the background it answers with its id; what fails at once is reported at once', async () => {
    const answer = await ask('execute', { command: 'sleep 1000', run_in_background: true });
    expect(answer).toMatchObject({ success: true, backgrounded: true, wall_duration_ms: 0 });
    expect(idOf(answer)).not.toBe('');
    expect(answer).not.toHaveProperty('exit_code');
    // A host whose clock stands still: its first look at the command lasts until the command has ended.
    const box = toolbox({
      connection: apiOver(await inProcess({ clock: new FakeClock() }), 'chat-1'),
    });
    const wrong = { command: 'no-such-program', run_in_background: true };
    const failed = await ask('execute', wrong, { box });
    expect(failed).toMatchObject({ success: false, exit_code: 127, backgrounded: true });
  });

  it('[L8] 77: a timeout ends nothing and answers with the id and the output so far', async () => {
    const command = 'echo first; sleep 1000';
    const answer = await ask('execute', { command, timeout: '1s' });
    expect(answer).toMatchObject({
      success: false,
      exit_code: -1,
      running: true,
      output: 'first\n',
      error: expect.stringContaining('timed out after 1s') as string,
    });
    expect((await api.get(idOf(answer))).state).toBe('running');
    const none = await ask('execute', { command: 'sleep 1000', timeout: '0s' });
    expect(none).toMatchObject({ running: true, exit_code: -1 });
    expect(await ask('execute', { command: 'echo soon', timeout: 5 })).toMatchObject({
      success: true,
    });
  });

  it('[L8] a caller whose transport gives up is answered before, whatever the model asked for', async () => {
    const call = { maxWaitMs: 100 };
    const answer = await ask('execute', { command: 'sleep 1000', timeout: '10m' }, { call });
    expect(answer).toMatchObject({ running: true, exit_code: -1 });
    expect(answer.error).toContain('timed out after 100ms');
    expect(answer.note).toContain('time out after a minute');
  });

  it('[L9] 78: a start that fails is an answer with the reason, not a tool error', async () => {
    const missing = join(temporaryFolder(), 'nowhere');
    for (const run_in_background of [false, true]) {
      const answer = await ask('execute', { command: 'true', workdir: missing, run_in_background });
      expect(answer).toMatchObject({ success: false });
      expect(answer).not.toHaveProperty('exit_code');
      expect(answer.error).toMatch(
        run_in_background ? /^start background process: / : /^start process: /,
      );
      expect(answer.error).toContain(`${missing} does not exist`);
      expect(answer.error).not.toContain('POSIX shell');
    }
  });

  it('[L9] 79: without a shell the answer says what to install, and where that is explained', async () => {
    const folder = temporaryFolder();
    const empty = temporaryFolder();
    const surroundings = { env: { PATH: empty }, cwd: empty, home: empty };
    const host = await Host.open({ folder, surroundings });
    onCleanup(() => host.close());
    const box = new Toolbox({ connection: apiOver(host, 'chat-1') });
    for (const run_in_background of [false, true]) {
      const { error } = await ask('execute', { command: 'true', run_in_background }, { box });
      expect(error).toMatch(/^start (background )?process: /);
      expect(error).toMatch(/POSIX shell.*https:\/\//);
    }
  });

  it('[L10] the same call again attaches to what it started, for what is left of its time', async () => {
    const folder = temporaryFolder();
    const command = `echo run >> ${folder}/runs; echo ran; sleep 1000`;
    const call = { callId: 'message-1-call-1' };
    const first = await ask('execute', { command, timeout: '300ms' }, { call });
    await ask('process_wait', { process_ids: [idOf(first)], text: 'ran' });
    const again = await ask('execute', { command, timeout: '300ms' }, { call });
    expect(again).toMatchObject({ attached: true, running: true });
    expect(idOf(again)).toBe(idOf(first));
    expect(readFileSync(join(folder, 'runs'), 'utf8')).toBe('run\n');
    const other = await ask('execute', { command: 'echo other' }, { call });
    expect(other).toMatchObject({ success: false });
    expect(other.error).toMatch(/^start process: /);
  });

  it('[L11] bash tells the statuses of a pipeline; sh says that it does not', async () => {
    const command = 'echo x; false | true | (exit 3) | true';
    const answer = await ask('execute', { command, shell: 'bash' });
    expect(answer).toMatchObject({ success: true, pipeline_status: [1, 0, 3, 0], output: 'x\n' });
    expect(answer).not.toHaveProperty('note');
    const listed = (await ask('process_list', {})) as unknown as { processes: Answer[] };
    expect(listed.processes[0]).toMatchObject({ command });
    const plain = await ask('execute', { command: 'false | true' });
    expect(plain).not.toHaveProperty('pipeline_status');
    expect(plain.note).toContain('last command of the pipeline');
    expect(await ask('execute', { command: 'echo y', shell: 'bash' })).not.toHaveProperty(
      'pipeline_status',
    );
  });

  it('[L40] a command is shown as the model gave it, in lists, to `ps` and in errors of bash', async () => {
    const command = 'tr "\\0" "|" < /proc/$$/cmdline; env | grep BASH_ENV; false | true';
    const answer = await ask('execute', { command, shell: 'bash' });
    expect(answer.output).toBe(`bash|-c|${command}|`);
    const { processes } = await api.list({});
    expect(processes[0]).toMatchObject({ command, argv: ['bash', '-c', command] });
    const wrong = await ask('execute', { command: 'echo )', shell: 'bash' });
    expect(wrong.output).toMatch(/^bash: -c: line 1: .*\nbash: -c: line 1: `echo \)'\n$/);
    const late = await ask('execute', { command: 'true\necho )', shell: 'bash' });
    expect(late.output).toMatch(/line 2: `echo \)'\n$/);
  });

  it('[L12] 86: printing whole files calls for a note, other commands do not', async () => {
    const yes = [
      'cat foo.txt',
      'grep --include-all pattern',
      'rg -l pattern',
      ' cat a',
      'cd x && cat y',
      'sudo cat /etc/x',
    ];
    const no = [
      'concatenate foo',
      'grep -r pattern',
      'cat a | wc -l',
      'cat <<E >f\nx\nE',
      'cat > f',
      'echo cat x',
      'cat',
    ];
    expect(yes.filter((command) => !dumpsFiles(command))).toEqual([]);
    expect(no.filter(dumpsFiles)).toEqual([]);
    expect((await ask('execute', { command: 'cat /dev/null' })).note).toContain('To read files');
    expect(await ask('execute', { command: 'echo x' })).not.toHaveProperty('note');
  });

  it('[L12] a command that asks although its stdin is empty gets a note', async () => {
    for (const prompt of ['Continue? [y/N] ', 'Password: ', 'Overwrite a? (yes/no) '])
      expect(asksForInput(`some lines\n${prompt}`, false)).toBe(true);
    expect(asksForInput('EOFError: EOF when reading a line\n', true)).toBe(true);
    expect(asksForInput('all tests passed\n', true)).toBe(false);
    const answer = await ask('execute', { command: 'printf "Proceed? [y/N] "; read x; exit 1' });
    expect(answer.note).toContain('stdin is empty');
  });

  it('[L13] 88: NUL and control bytes survive any storage, and output is labelled as data', async () => {
    const answer = await ask('execute', { command: "printf 'a\\000b\\033[31mc\\001\\n'" });
    expect(answer.output).toBe('a\\x00bc\\x01\n');
    expect(answer['output_is']).toContain('untrusted');
    expect(JSON.parse(JSON.stringify(answer))).toEqual(answer);
    // oxlint-disable-next-line no-control-regex
    expect(JSON.stringify(answer)).not.toMatch(/\\u0000|[\x00-\x1f]/);
  });

  it('[L14] 98: an interrupt ends what is waited for and spares the background; giving up ends nothing', async () => {
    const folder = temporaryFolder();
    const ready = `touch ${folder}/ready; sleep 1000`;
    const begun = async (): Promise<string> => {
      for (;;) {
        const { processes } = await api.list({ state: 'running' });
        const found = processes.find(({ command }) => command === ready);
        if (found && existsSync(join(folder, 'ready'))) return found.id;
        // Answers of a host that is near come in the same turn: others must have theirs.
        await nextTurn();
      }
    };
    const interrupt = new AbortController();
    const waiting = ask(
      'execute',
      { command: ready, timeout: '5m' },
      { call: { interrupt: interrupt.signal } },
    );
    const id = await begun();
    interrupt.abort();
    expect(await waiting).toMatchObject({
      success: false,
      error: 'interrupted; the process was ended',
    });
    expect((await api.get(id)).outcome).toMatchObject({ kind: 'signal', signal: 'SIGKILL' });

    const kept = new AbortController();
    const background = await ask(
      'execute',
      { command: 'sleep 1000', run_in_background: true },
      { call: { interrupt: kept.signal } },
    );
    kept.abort();
    expect((await api.get(idOf(background))).state).toBe('running');

    const gaveUp = new AbortController();
    const waits = toolbox().call(
      'execute',
      { command: ready, timeout: '5m' },
      { signal: gaveUp.signal },
    );
    const still = await begun();
    gaveUp.abort();
    await expect(waits).rejects.toMatchObject({ code: 'aborted' });
    expect((await api.get(still)).state).toBe('running');
  });

  it('[L14] 98: when the answer to the start is lost, an interrupt finds the process by its key; not yet there is not gone', async () => {
    const interrupt = new AbortController();
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    let looked = 0;
    const slow = withFaults(api, {
      // Never answered, as when the connection is lost; started only later.
      start: async (spec) => {
        void released.then(() => api.start(spec));
        interrupt.abort();
        return new Promise(() => undefined);
      },
      list: async (filter) => {
        looked += 1;
        if (looked === 2) release();
        if (looked === 3) throw (await broken('away')().catch((error: unknown) => error)) as Error;
        return api.list(filter);
      },
    });
    const box = toolbox({ connection: slow });
    const answer = await ask(
      'execute',
      { command: 'sleep 1000' },
      { box, call: { interrupt: interrupt.signal } },
    );
    expect(answer).toMatchObject({ success: false, error: 'interrupted; the process was ended' });
    const { processes } = await api.list({});
    expect(processes).toMatchObject([{ outcome: { signal: 'SIGKILL' } }]);
  });
});

describe('how often the host is asked', () => {
  /** The names of the calls that reached the host. */
  function counting(): { box: Toolbox; asked: string[] } {
    const asked: string[] = [];
    const counted = Object.entries(api).map(([name, call]: [string, unknown]) => [
      name,
      typeof call !== 'function'
        ? call
        : (...args: unknown[]): unknown => {
            asked.push(name);
            return (call as (...all: unknown[]) => unknown)(...args);
          },
    ]);
    return { box: toolbox({ connection: Object.fromEntries(counted) as Api }), asked };
  }

  it.each([
    ['that prints nothing', { command: 'exit 3' }, { exit_code: 3 }, ['start']],
    ['that prints', { command: 'echo hi' }, { success: true, output: 'hi\n' }, ['start', 'range']],
    [
      'of bash with a pipeline',
      { command: 'echo x; false | true', shell: 'bash' },
      { output: 'x\n', pipeline_status: [1, 0] },
      ['start', 'range'],
    ],
    [
      'that goes on',
      { command: 'echo on; sleep 1000', timeout: '1s' },
      { running: true, output: 'on\n' },
      ['start', 'range'],
    ],
    [
      'that leaves a descendant',
      { command: 'sleep 1000 >/dev/null 2>&1 & echo left; exit 0 # &' },
      { success: true, output: 'left\n', background_process_id: expect.any(String) as string },
      ['start', 'range'],
    ],
    [
      'in the background',
      { command: 'sleep 1000', run_in_background: true },
      { running: true, backgrounded: true },
      ['start'],
    ],
  ])('[M30] a command %s takes at most two requests', async (_name, input, expected, calls) => {
    const { box, asked } = counting();
    expect(await ask('execute', input, { box })).toMatchObject(expected);
    expect(asked).toEqual(calls);
  });

  it('[M30] a start whose answer is lost says that it may be running', async () => {
    const box = toolbox({ connection: withFaults(api, { start: broken('the line is cut') }) });
    const { error } = await ask('execute', { command: 'true' }, { box });
    expect(error).toBe(
      'start process: the line is cut It may be running: process_list shows whether it is.',
    );
  });
});

describe('what can go wrong with a wait', () => {
  /** As where no more may wait: the start is answered at once. */
  const start: Api['start'] = ({ waitMs: _waitMs, settleMs: _settleMs, ...spec }) =>
    api.start(spec);

  it('[L15] 82: when nothing can be asked any more, the answer has the reason and the id', async () => {
    const faulty = withFaults(api, {
      start,
      wait: broken('the line is cut'),
      get: broken('nobody answers'),
    });
    const answer = await ask(
      'execute',
      { command: 'sleep 1000' },
      { box: toolbox({ connection: faulty }) },
    );
    expect(answer).toMatchObject({ success: false });
    expect(answer.error).toContain('the line is cut');
    expect(answer.error).toContain('nobody answers');
    expect((await api.get(idOf(answer))).state).toBe('running');
    const unread = withFaults(api, { range: broken('cannot be read') });
    const later = await ask(
      'execute',
      { command: 'echo x' },
      { box: toolbox({ connection: unread }) },
    );
    expect(later.error).toContain('cannot be read');
    expect(idOf(later)).not.toBe('');
  });

  it('[L15] 83: a broken wait whose process has exited is reported as its exit', async () => {
    const wait: Api['wait'] = async (params, signal) => {
      if (params.waits[0]?.for[0]?.kind !== 'exit') return api.wait(params, signal);
      await api.wait(params, signal);
      return broken('the line is cut')();
    };
    const box = toolbox({ connection: withFaults(api, { start, wait }) });
    const answer = await ask('execute', { command: 'echo done' }, { box });
    expect(answer).toMatchObject({ success: true, exit_code: 0, output: 'done\n' });
    expect(answer).not.toHaveProperty('background_process_id');
    expect(answer).not.toHaveProperty('error');
  });

  it('[L15] 84: a broken wait whose process runs says so, with the output and the id', async () => {
    const command = 'echo begun; sleep 1000';
    const wait: Api['wait'] = async (params, signal) => {
      const [first] = params.waits;
      if (first)
        await api.wait(
          { waits: [{ id: first.id, for: [{ kind: 'text', text: 'begun' }] }] },
          signal,
        );
      return broken('the line is cut')();
    };
    const box = toolbox({ connection: withFaults(api, { start, wait }) });
    const answer = await ask('execute', { command }, { box });
    expect(answer).toMatchObject({ success: false, running: true, output: 'begun\n' });
    expect(answer.error).toMatch(/still running.*process_output/);
    expect(idOf(answer)).not.toBe('');
  });

  it('[L15] 85: without a connection, or when it cannot be made, the tool error says so', async () => {
    expect(await toolError('process_list', {}, new Toolbox({}))).toContain('not configured');
    let tries = 0;
    const box = new Toolbox({
      connection: () => {
        tries += 1;
        return tries === 1 ? Promise.reject(new Error('the host sleeps')) : Promise.resolve(api);
      },
    });
    expect(await toolError('process_list', {}, box)).toBe('the host sleeps');
    expect(await ask('process_list', {}, { box })).toEqual({ processes: [] });
  });

  it('[L16] a server that answers early is asked again, but not without a pause, until the time is over', async () => {
    const clock = new FakeClock();
    const asked: number[] = [];
    const wait: Api['wait'] = async ({ timeoutMs = 0 }) => {
      asked.push(timeoutMs);
      return { met: [], timedOut: true };
    };
    const { id } = (await api.start({ command: 'sleep 1000' })).process;
    const box = toolbox({ clock, connection: withFaults(api, { wait }) });
    const answer = ask('process_output', { process_id: id, wait_timeout: '10m' }, { box });
    for (let left = 601; left > 0; left -= 1) {
      while (clock.pending === 0 && asked.length < 601) await nextTurn();
      clock.advance(1000);
    }
    expect(await answer).toMatchObject({ running: true });
    expect(asked.length).toBeLessThanOrEqual(601);
    expect(asked.length).toBeGreaterThan(590);
    expect(Math.max(...asked)).toBeLessThanOrEqual(300_000);
  });

  it('[L16] while it waits, it says how long already', async () => {
    const seen: number[] = [];
    const hold = gate();
    const progress = ({ elapsedMs, ofMs }: { elapsedMs: number; ofMs: number }): void => {
      expect(ofMs).toBe(60_000);
      if (seen.push(elapsedMs) === 3) hold.open();
    };
    const box = toolbox({ progressEveryMs: 100 });
    await ask('execute', { command: hold.wait, timeout: '1m' }, { box, call: { progress } });
    expect(seen.length).toBeGreaterThanOrEqual(3);
    expect([...seen].sort((a, b) => a - b)).toEqual(seen);
    const before = seen.length;
    await ask('execute', { command: 'sleep 0.3' }, { box });
    expect(seen.length).toBe(before);
  });
});

describe('process_output', () => {
  it('[L17] 80: of a running process it gives the output so far, the command, and when it last printed', async () => {
    const command = 'echo up; sleep 1000';
    const box = toolbox();
    const started = await ask('execute', { command, run_in_background: true }, { box });
    const process_id = idOf(started);
    await ask('process_wait', { process_ids: [process_id], text: 'up' });
    const answer = await ask('process_output', { process_id, wait_timeout: '0s' }, { box });
    expect(answer).toMatchObject({ success: true, running: true, command, output: 'up\n' });
    expect(answer.note).toContain('still running');
    expect(answer['wall_duration_ms']).toBeGreaterThan(0);
    expect(answer['last_output_ms_ago']).toBeGreaterThanOrEqual(0);
    expect(answer).not.toHaveProperty('exit_code');
  });

  it('[L17] 81: of an ended one it gives code and command, without waiting', async () => {
    const { process_id } = await ask('execute', { command: 'echo bad; exit 3' });
    const answer = await ask('process_output', { process_id });
    expect(answer).toMatchObject({
      success: false,
      exit_code: 3,
      running: false,
      command: 'echo bad; exit 3',
      output: 'bad\n',
    });
    const unknown = await ask('process_output', { process_id: 'nobody' });
    expect(unknown).toMatchObject({ success: false });
    expect(unknown.error).toMatch(/^get process output: .*not found; process_list /);
    expect(unknown).not.toHaveProperty('background_process_id');
  });

  it('[L18] new_only gives each byte once to each caller', async () => {
    const [one, two] = [toolbox(), toolbox()];
    const command = 'echo a; read x; echo b$x; read y; echo c';
    const started = await ask(
      'execute',
      { command, stdin: true, run_in_background: true },
      { box: one },
    );
    const process_id = idOf(started);
    const fresh = async (box: Toolbox): Promise<string | undefined> =>
      (await ask('process_output', { process_id, new_only: true, wait_timeout: '0s' }, { box }))
        .output;
    await ask('process_wait', { process_ids: [process_id], text: 'a' }, { box: toolbox() });
    expect([await fresh(one), await fresh(one)]).toEqual(['a\n', undefined]);
    await api.write({ id: process_id, data: Buffer.from('1\n') });
    await ask('process_wait', { process_ids: [process_id], text: 'b1' }, { box: toolbox() });
    expect([await fresh(one), await fresh(two)]).toEqual(['b1\n', 'a\nb1\n']);
    const all = await ask('process_output', { process_id, wait_timeout: '0s' }, { box: one });
    expect(all.output).toBe('a\nb1\n');
  });

  it('[L18] reads that bring nothing again and again are answered with better advice', async () => {
    const box = toolbox();
    const started = await ask('execute', { command: 'sleep 1000 &' }, { box });
    const process_id = idOf(started);
    const read = async (): Promise<string | undefined> =>
      (await ask('process_output', { process_id, wait_timeout: '0s', new_only: true }, { box }))
        .note;
    const said = [await read(), await read(), await read()];
    expect(said.map((note) => note?.includes('process_wait'))).toEqual([false, false, true]);
  });

  it('[L19] what was left out is fetched with the call that the mark names', async () => {
    const box = toolbox({ maxOutputBytes: 2000 });
    const answer = await ask('execute', { command: 'seq 1 20000' }, { box });
    const { process_id = '', output = '' } = answer;
    expect(output).toMatch(/^1\n2\n/);
    expect(output).toMatch(/19999\n20000\n$/);
    expect(Buffer.byteLength(output)).toBeLessThanOrEqual(2000);
    const match = /process_output (\{.*?\})/.exec(output);
    let input = JSON.parse(match?.[1] ?? '') as Record<string, unknown>;
    const { omitted_bytes: omitted, omitted_offset: at } = answer['truncated'] as Record<
      string,
      number
    >;
    expect(input).toEqual({ process_id, offset: at });
    let text = output.slice(0, output.indexOf('... [omitted'));
    expect(text.length).toBe(at);
    while (text.length < (at ?? 0) + (omitted ?? 0)) {
      const page = await ask('process_output', input, { box });
      text += page.output;
      input = { process_id, offset: page['next_offset'] };
      if (page['next_offset'] === undefined) break;
    }
    const whole = `${Array.from({ length: 20_000 }, (_, index) => index + 1).join('\n')}\n`;
    expect(whole.startsWith(text)).toBe(true);
    expect(text.length).toBeGreaterThanOrEqual((at ?? 0) + (omitted ?? 0));
  });

  it('[L19] a token budget holds for every output of an answer', async () => {
    const box = toolbox({ maxOutputBytes: 1000 });
    const { output = '', process_id } = await ask(
      'execute',
      { command: "head -c 3000000 /dev/zero | tr '\\0' x" },
      { box },
    );
    expect(Buffer.byteLength(output)).toBeLessThanOrEqual(1000);
    expect(output).toMatch(/^x+/);
    expect(output).toMatch(/x+$/);
    const less = await ask('process_output', { process_id, max_bytes: 400 }, { box });
    expect(Buffer.byteLength(less.output ?? '')).toBeLessThanOrEqual(400);
  });
});

describe('the other tools', () => {
  it('[L20] process_list has the running ones first, never hides them, and counts the rest', async () => {
    const box = toolbox();
    for (let index = 0; index < 12; index += 1) await api.start({ command: `sleep 100${index}` });
    for (let index = 0; index < 3; index += 1) await ask('execute', { command: `exit ${index}` });
    const listed = (await ask('process_list', {}, { box })) as unknown as {
      processes: Record<string, unknown>[];
      total: number;
    };
    expect(listed.processes.map(({ running }) => running)).toEqual(
      Array.from({ length: 12 }, () => true),
    );
    expect(listed.total).toBe(15);
    const all = (await ask('process_list', { limit: 100 })) as unknown as typeof listed;
    expect(all.processes.slice(12)).toMatchObject([
      { exit_code: 2 },
      { exit_code: 1 },
      { exit_code: 0 },
    ]);
    const away = toolbox({ connection: withFaults(api, { list: broken('away') }) });
    expect(await ask('process_list', {}, { box: away })).toMatchObject({
      success: false,
      error: 'list processes: away',
    });
  });

  it('[L20] process_signal ends a family, kills what does not heed, and says what cannot be signalled', async () => {
    const { id } = (
      await api.start({ command: "trap '' TERM; echo deaf; while :; do sleep 0.1; done" })
    ).process;
    await ask('process_wait', { process_ids: [id], text: 'deaf' });
    const box = toolbox({
      connection: withFaults(api, { signal: (params) => api.signal({ ...params, graceMs: 50 }) }),
    });
    const ended = await ask('process_signal', { process_id: id, signal: 'SIGTERM' }, { box });
    expect(ended['message']).toContain(`signal "terminate" sent to process ${id}`);
    expect((await api.get(id)).outcome).toMatchObject({ kind: 'signal' });
    const again = await ask('process_signal', { process_id: id, signal: 'kill' });
    expect(again).toEqual({
      success: true,
      message: `process ${id} had already exited`,
      running: false,
      signal: 'SIGKILL',
    });
    const nobody = await ask('process_signal', { process_id: 'nobody', signal: 'kill' });
    expect(nobody).toMatchObject({ success: false });
    expect(nobody.error).toMatch(/^signal process: .*not found; process_list/);
  });

  it('[L21] process_wait answers for a text, a pattern, a port, silence and an end, with what is new', async () => {
    const box = toolbox();
    const server =
      'const s=require("net").createServer().listen(0,"127.0.0.1",()=>console.log("ready on",s.address().port))';
    const { id } = (await api.start({ argv: [process.execPath, '-e', server] })).process;
    const wait = (input: Record<string, unknown>): Promise<Answer> =>
      ask('process_wait', { process_ids: [id], ...input }, { box });
    const text = await wait({ text: 'ready' });
    expect(text).toMatchObject({ success: true, processes: [{ met: 'text', running: true }] });
    const [{ line, output }] = text['processes'] as [{ line: string; output: string }];
    expect(output).toBe(`${line}\n`);
    const pattern = await wait({ pattern: 'ready on \\d+$' });
    expect(pattern).toMatchObject({ processes: [{ met: 'pattern', line }] });
    expect((pattern['processes'] as [Answer])[0]).not.toHaveProperty('output');
    const port = Number(line.split(' ').at(-1));
    expect(await wait({ port })).toMatchObject({ processes: [{ met: 'port', port }] });
    expect(await wait({ silence: '50ms' })).toMatchObject({ processes: [{ met: 'silence' }] });
    const timedOut = await wait({ text: 'never', wait_timeout: '50ms' });
    expect(timedOut).toMatchObject({
      success: false,
      timed_out: true,
      processes: [{ running: true }],
    });
    const dying = wait({ text: 'never', wait_timeout: '1m' });
    await api.signal({ id, signal: 'kill', by: 'test' });
    expect(await dying).toMatchObject({ processes: [{ running: false, signal: 'SIGKILL' }] });
  });

  it('[L21] process_wait takes the first of several, or all', async () => {
    const start = async (command: string): Promise<string> =>
      (await api.start({ command })).process.id;
    const [long, short] = [await start('sleep 1000'), await start('exit 4')];
    const first = await ask('process_wait', { process_ids: [long, short] });
    expect(first['processes']).toMatchObject([{ process_id: short, met: 'exit', exit_code: 4 }]);
    const all = await ask('process_wait', {
      process_ids: [long, short],
      mode: 'all',
      wait_timeout: '50ms',
    });
    expect(all).toMatchObject({ success: false, timed_out: true });
    expect(all['processes']).toHaveLength(2);
    const both = await ask('process_wait', {
      process_ids: [short, await start('exit 5')],
      mode: 'all',
    });
    expect(both).toMatchObject({ success: true, processes: [{ exit_code: 4 }, { exit_code: 5 }] });
    expect((await ask('process_wait', { process_ids: ['nobody'] })).error).toMatch(
      /^wait for process: /,
    );
  });

  it('[L22] process_write types, ends and interrupts, and answers with what follows', async () => {
    const box = toolbox();
    const start = async (input: Record<string, unknown>): Promise<string> =>
      idOf(await ask('execute', { run_in_background: true, ...input }, { box }));
    const id = await start({
      command: 'while read line; do echo "got $line"; done; echo over',
      stdin: true,
    });
    const said = await ask('process_write', { process_id: id, text: 'one\n' }, { box });
    expect(said).toMatchObject({
      success: true,
      written_bytes: 4,
      output: 'got one\n',
      running: true,
    });
    const ended = await ask('process_write', { process_id: id, eof: true }, { box });
    expect(ended).toMatchObject({ output: 'over\n', running: false, exit_code: 0 });
    const deaf = await start({ command: 'tail -n +1 -f /etc/passwd' });
    expect((await ask('process_write', { process_id: deaf, text: 'x' })).error).toMatch(
      /^write to process: /,
    );
    // Its own words: a shell that is about to start a program can lose a Ctrl-C.
    await ask('process_wait', { process_ids: [deaf], text: 'root' }, { box });
    const pressed = await ask('process_write', { process_id: deaf, interrupt: true }, { box });
    expect(pressed).toMatchObject({ success: true, running: false, signal: 'SIGINT' });
    const tty = await start({ command: 'test -t 0 && cat /etc/passwd -', tty: true });
    await ask('process_wait', { process_ids: [tty], text: 'root' }, { box });
    expect(await ask('process_write', { process_id: tty, interrupt: true }, { box })).toMatchObject(
      {
        running: false,
        signal: 'SIGINT',
      },
    );
  });

  it('[L22] a repeated write of the same call is applied once', async () => {
    const { id } = (await api.start({ command: 'cat', stdin: 'pipe' })).process;
    const call = { callId: 'same' };
    await ask('process_write', { process_id: id, text: 'once\n' }, { call });
    await ask('process_write', { process_id: id, text: 'once\n', wait_timeout: '0s' }, { call });
    await ask('process_write', { process_id: id, eof: true });
    expect((await api.text({ id })).text).toBe('once\n');
  });

  it('[L30] lines around hits that are close together are shown once', async () => {
    const { process_id } = await ask('execute', { command: 'seq 1 40' });
    const found = await ask('process_search', {
      process_id,
      pattern: '^(10|11|14|18|30)$',
      regex: true,
      context: 2,
    });
    expect(found['hits']).toMatchObject([
      { line: '10', before: ['8', '9'] },
      { line: '11', after: ['12', '13'] },
      { line: '14', after: ['15', '16'] },
      { line: '18', before: ['17'], after: ['19', '20'] },
      { line: '30', before: ['28', '29'], after: ['31', '32'] },
    ]);
    const lines = (
      found['hits'] as { line: string; before?: string[]; after?: string[] }[]
    ).flatMap(({ before = [], line, after = [] }) => [...before, line, ...after]);
    expect(lines).toEqual(Array.from(new Set(lines)));
  });

  it('[L23] process_search finds lines in all that is kept, with context, and goes on from a cursor', async () => {
    const { process_id } = await ask('execute', { command: 'seq 1 100000', timeout: '30s' });
    const found = await ask('process_search', { process_id, pattern: '77777', context: 1 });
    expect(found['hits']).toMatchObject([{ line: '77777', before: ['77776'], after: ['77778'] }]);
    expect(found['output_is']).toContain('untrusted');
    const some = await ask('process_search', {
      process_id,
      pattern: '^1\\d{4}$',
      regex: true,
      limit: 3,
      context: 0,
    });
    expect((some['hits'] as Answer[]).map(({ line }) => line)).toEqual(['10000', '10001', '10002']);
    const more = await ask('process_search', {
      process_id,
      pattern: '^1\\d{4}$',
      regex: true,
      limit: 1,
      context: 0,
      offset: some['next_offset'],
    });
    expect((more['hits'] as Answer[]).map(({ line }) => line)).toEqual(['10003']);
    expect((await ask('process_search', { process_id, pattern: '(', regex: true })).error).toMatch(
      /^search output: /,
    );
    const box = toolbox({ maxOutputBytes: 1000 });
    const bounded = await ask('process_search', { process_id, pattern: '9', limit: 200 }, { box });
    expect(Buffer.byteLength(JSON.stringify(bounded['hits']))).toBeLessThan(1200);
    expect(bounded['next_offset']).toBeGreaterThan(0);
  });

  it('[L24] the definitions come in the shapes of both APIs, and as functions', async () => {
    const names = toolDefinitions.map(({ name }) => name);
    expect(names).toEqual([
      'execute',
      'process_output',
      'process_list',
      'process_signal',
      'process_wait',
      'process_write',
      'process_search',
      'terminal_open',
      'terminal_run',
      'terminal_keys',
      'terminal_wait',
      'terminal_read',
      'terminal_screenshot',
      'terminal_close',
    ]);
    expect(openAiTools().map((tool) => [tool.type, tool.function.name])).toEqual(
      names.map((name) => ['function', name]),
    );
    expect(openAiResponsesTools().map(({ name }) => name)).toEqual(names);
    for (const { input_schema: schema } of anthropicTools())
      expect(schema).toMatchObject({ type: 'object', properties: expect.any(Object) as object });
    const functions = toolFunctions(toolbox());
    expect(await functions.execute({ command: 'echo hi' })).toMatchObject({ output: 'hi\n' });
    await expect(functions.execute({})).rejects.toMatchObject({ code: 'invalid_input' });
  });

  it('[L5] durations are read as Go reads them', () => {
    const read = {
      '1m30s': 90_000,
      '500ms': 500,
      '1.5s': 1500,
      '0': 0,
      '2h': 7_200_000,
      '-1s': -1000,
      '10': 10_000,
    };
    for (const [text, ms] of Object.entries(read))
      expect([text, parseDuration(text)]).toEqual([text, ms]);
    for (const text of ['', 'soon', '1x', '1d', 's', '1 s', '--1s'])
      expect(parseDuration(text)).toBeUndefined();
  });

  it('[L26] an embedded host keeps its program alive while something is awaited, and no longer', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [
      program('embedded-wait.mjs'),
      temporaryFolder(),
    ]);
    expect(stdout).toBe('settled\n');
  });

  it('[L25] commands run in the directory of the caller by default', async () => {
    const directory = temporaryFolder();
    mkdirSync(join(directory, 'inner'));
    const box = toolbox({ directory });
    expect((await ask('execute', { command: 'pwd' }, { box })).output).toBe(`${directory}\n`);
    const inner = await ask(
      'execute',
      { command: 'pwd', workdir: join(directory, 'inner') },
      { box },
    );
    expect(inner.output).toBe(`${directory}/inner\n`);
  });
});
