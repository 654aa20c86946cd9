// What a session costs a model: the same three jobs done with our tools and by an agent that polls every second. The
// polling agent reads the whole output each time (its newest 32 KB): as it was printed, as with many tools, and once more
// as our own clean text, to show what polling alone costs. Counted are calls, and tokens as bytes / 4 of every argument
// and answer. The polls are real calls; AGENT_SPEED divides all times (default 10; 1 is true time), the polling interval
// too, so that the number of polls is that of true time.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { embed, Toolbox } from '../dist/index.js';
import { row } from './support/rows.mjs';

const SPEED = Number(process.env.AGENT_SPEED ?? 10);
const POLL_MS = 1000 / SPEED;
const NAIVE_OUTPUT_BYTES = 32_768;
const PROGRAM = new URL('./programs/agent-jobs.mjs', import.meta.url).pathname;
const job = (name) => `${process.execPath} ${PROGRAM} ${name} ${SPEED}`;
const seconds = (amount) => `${Math.round((amount * 1000) / SPEED)}ms`;

export async function run({ progress }) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-agent-'));
  const holdfast = await embed({ folder });
  const rows = [];
  const sums = { ours: new Ledger(), naive: new Ledger(), clean: new Ledger() };
  try {
    for (const [name, jobs] of Object.entries(sessions)) {
      progress(`${name}, with the tools`);
      const ours = new Ledger();
      await jobs.ours(ourAgent(holdfast, ours));
      progress(`${name}, polling every second`);
      const naive = new Ledger();
      await jobs.naive(naiveAgent(holdfast, naive));
      progress(`${name}, polling for clean text`);
      const clean = new Ledger();
      await jobs.naive(naiveAgent(holdfast, clean, new Toolbox({ connection: holdfast.api })));
      for (const [who, ledger] of Object.entries({ ours, naive, clean })) sums[who].add(ledger);
      rows.push(compared(name, ours, naive), compared(`${name}, clean text`, ours, clean));
    }
  } finally {
    await holdfast.close();
    rmSync(folder, { recursive: true, force: true });
  }
  return [
    ...rows,
    compared('the whole session', sums.ours, sums.naive, { atLeast: 5 }),
    compared('the whole session, clean text', sums.ours, sums.clean, { atLeast: 5 }),
  ];
}

function compared(what, ours, naive, bar = {}) {
  const tokens = ({ bytes }) => Math.ceil(bytes / 4);
  const note = `${ours.calls} calls, ${tokens(ours)} tokens; polling ${naive.calls} calls, ${tokens(naive)} tokens`;
  return row({
    what: `${what}: tokens of polling to ours`,
    value: naive.bytes / ours.bytes,
    unit: 'times',
    note,
    ...bar,
  });
}

class Ledger {
  calls = 0;
  bytes = 0;

  add({ calls, bytes }) {
    this.calls += calls;
    this.bytes += bytes;
  }

  note(input, answer) {
    this.calls += 1;
    this.bytes +=
      Buffer.byteLength(JSON.stringify(input)) + Buffer.byteLength(JSON.stringify(answer));
  }
}

function ourAgent(holdfast, ledger) {
  const toolbox = new Toolbox({ connection: holdfast.api });
  return async (name, input) => {
    const answer = await toolbox.call(name, input);
    if (answer.isError) throw new Error(answer.text);
    ledger.note({ name, input }, answer.result);
    return answer.result;
  };
}

/** start, read (everything, the newest 32 KB; with a toolbox as clean text), kill. */
function naiveAgent(holdfast, ledger, toolbox) {
  const output = async (handle) => {
    if (toolbox) {
      const input = { process_id: handle.id, wait_timeout: '0s' };
      return (await toolbox.call('process_output', input)).result.output ?? '';
    }
    let text = '';
    for await (const chunk of handle.logs()) text += chunk.text;
    return text.slice(-NAIVE_OUTPUT_BYTES);
  };
  const read = async (handle) => {
    const { outcome } = await handle.status();
    const answer = { output: await output(handle), running: !outcome, ...outcome };
    ledger.note({ name: 'read_output', input: { id: handle.id } }, answer);
    return answer;
  };
  return {
    start: async (command) => {
      const handle = await holdfast.start(command);
      ledger.note({ name: 'start', input: { command } }, { id: handle.id });
      return handle;
    },
    pollUntil: async (handle, done) => {
      for (;;) {
        await sleep(POLL_MS);
        const answer = await read(handle);
        if (done(answer)) return answer;
      }
    },
    kill: async (handle) => {
      await handle.terminate();
      ledger.note({ name: 'kill', input: { id: handle.id } }, { ok: true });
    },
  };
}

const ended = ({ running }) => !running;
const check = (met, what) => {
  if (!met) throw new Error(`the agent did not learn ${what}`);
};

const sessions = {
  'a build of 60 s': {
    ours: async (call) => {
      const started = await call('execute', { command: job('build'), timeout: seconds(10) });
      const id = started.background_process_id;
      const { processes } = await call('process_wait', {
        process_ids: [id],
        wait_timeout: seconds(120),
      });
      check(
        processes[0].exit_code === 0 && processes[0].output.includes('built'),
        'that it was built',
      );
    },
    naive: async ({ start, pollUntil }) => {
      const answer = await pollUntil(await start(job('build')), ended);
      check(answer.code === 0, 'that it was built');
    },
  },
  'a server that is ready after 8 s, used, and ended': {
    ours: async (call) => {
      const started = await call('execute', { command: job('server'), run_in_background: true });
      const id = started.background_process_id;
      const { processes } = await call('process_wait', {
        process_ids: [id],
        text: 'ready',
        wait_timeout: seconds(45),
      });
      check(processes[0].met === 'text', 'that it is ready');
      await call('execute', { command: `${process.execPath} -e ""` });
      const found = await call('process_search', {
        process_id: id,
        pattern: 'GET /',
        limit: 3,
        context: 0,
      });
      check(found.hits.length > 0, 'what was asked');
      await call('process_signal', { process_id: id, signal: 'terminate' });
    },
    naive: async ({ start, pollUntil, kill }) => {
      const server = await start(job('server'));
      const isReady = ({ output }) => output.includes('ready');
      await pollUntil(server, isReady);
      await pollUntil(await start(`${process.execPath} -e ""`), ended);
      await pollUntil(server, ({ output }) => output.includes('GET /'));
      await kill(server);
    },
  },
  'tests of 25 s of which one fails': {
    ours: async (call) => {
      const result = await call('execute', { command: job('tests'), timeout: seconds(45) });
      const id = result.background_process_id ?? result.process_id;
      // On a busy machine they take longer.
      const waited = result.running
        ? (await call('process_wait', { process_ids: [id], wait_timeout: '2m' })).processes[0]
        : result;
      check(waited.exit_code === 1, 'that a test fails');
      const found = await call('process_search', {
        process_id: id,
        pattern: 'not ok',
        context: 3,
      });
      check(found.hits.length === 1, 'which test fails');
    },
    naive: async ({ start, pollUntil }) => {
      const answer = await pollUntil(await start(job('tests')), ended);
      check(answer.code === 1 && answer.output.includes('not ok'), 'which test fails');
    },
  },
};
