// What one caller can do to hold up the others. Each attack prepares what it needs, says that it is ready, and then goes on
// until it is told to stop; all are bounded in number, so that a machine survives its own bench.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';

const DEAD_MOUNT = new URL('../programs/dead-mount.py', import.meta.url).pathname;
const KiB = 1024;
const MiB = 1024 * KiB;
const BACK_OFF_MS = 20;

/** So many lanes of `work` until the signal; an answer of refusal is one, too. */
async function lanes(count, signal, work) {
  let turn = 0;
  const lane = async () => {
    while (!signal.aborted) {
      const answer = await work(turn++);
      if (answer === undefined) return;
      if (answer.status === 429 || answer.status === 503) await sleep(BACK_OFF_MS);
    }
  };
  await Promise.all(Array.from({ length: count }, lane));
}

const nobody = () => undefined;

const post = (bob, spec) => bob.ask('POST', '/v1/processes', spec);

/** A process that has printed this, ended. */
async function printed(bob, command) {
  const id = await bob.start({ command });
  await bob.ended(id);
  return id;
}

/** A terminal of the largest size, full of characters in many colours. */
async function picture(bob) {
  const script = String.raw`for i in $(seq 1000); do printf '\033[3%dm%01000d' $((i%8)) $i; done; exec sleep 600`;
  const size = { cols: 1000, rows: 1000 };
  const body = { argv: ['sh', '-c', script], size };
  const { process } = await bob.json('POST', '/v1/terminals', body);
  const wait = { waits: [{ id: process.id, for: [{ kind: 'text', text: '0000001000' }] }] };
  await bob.json('POST', '/v1/wait', { ...wait, timeoutMs: 20_000 });
  return process.id;
}

const PICTURES = [
  'screenshot?format=svg',
  'screenshot?format=html',
  'snapshot?cells=true',
  'snapshot?format=text',
  'screenshot?format=png',
];

export const attacks = {
  'slow patterns': async (bob, signal, ready = nobody) => {
    const id = await printed(bob, `for i in $(seq 300); do printf '%040d!\\n' 0; done`);
    ready();
    const slow = encodeURIComponent('(0+)+$');
    await lanes(8, signal, () =>
      bob.ask('GET', `/v1/processes/${id}/search?kind=regex&pattern=${slow}`),
    );
  },
  '2,000 short starts': async (bob, signal, ready = nobody) => {
    ready();
    await lanes(32, signal, (turn) => (turn < 2000 ? post(bob, { command: 'true' }) : undefined));
  },
  'pictures of 1000 × 1000': async (bob, signal, ready = nobody) => {
    const id = await picture(bob);
    ready();
    await lanes(6, signal, (turn) =>
      bob.ask('GET', `/v1/terminals/${id}/${PICTURES[turn % PICTURES.length]}`),
    );
    await bob.ask('DELETE', `/v1/terminals/${id}`);
  },
  'answers that nobody reads': async (bob, signal, ready = nobody) => {
    const [text, id] = [await printed(bob, 'seq 400000'), await picture(bob)];
    ready();
    for (let turn = 0; turn < 40 && !signal.aborted; turn += 1) {
      bob.mute(`/v1/terminals/${id}/snapshot?cells=true`);
      bob.mute(`/v1/processes/${text}/text?maxBytes=${MiB}`);
      bob.mute(`/v1/processes/${text}/bytes?offset=0&maxBytes=${2 * MiB}`);
      await sleep(50);
    }
    await stopped(signal);
    bob.hangUp();
    await bob.ask('DELETE', `/v1/terminals/${id}`);
  },
  /** Opened as fast as it goes; above a number the oldest is closed for each new one. */
  terminals: async (bob, signal, ready = nobody) => {
    const open = [];
    ready();
    await lanes(8, signal, async (turn) => {
      if (turn >= 600) return undefined;
      const answer = await bob.ask('POST', '/v1/terminals', { argv: ['/bin/bash'] });
      if (answer.status === 200) open.push(JSON.parse(answer.text).process.id);
      if (open.length > 60) await bob.ask('DELETE', `/v1/terminals/${open.shift()}`);
      return answer;
    });
    await Promise.all(open.map((id) => bob.ask('DELETE', `/v1/terminals/${id}`)));
  },
  'long lists': async (bob, signal) => {
    const command = `: ${'x'.repeat(100 * KiB)}`;
    for (let turn = 0; turn < 150; turn += 1) await post(bob, { command });
    await lanes(4, signal, () => bob.ask('GET', '/v1/processes?limit=1000'));
  },
  'name patterns': async (bob, signal) => {
    const set = Object.fromEntries(
      Array.from({ length: 200 }, (_, n) => [`${'a'.repeat(200)}${n}`, 'x']),
    );
    const exclude = Array.from({ length: 100 }, (_, n) => `${'*a'.repeat(30)}*b${n}`);
    await lanes(2, signal, () => post(bob, { command: 'true', environment: { set, exclude } }));
  },
  'waits for a port': async (bob, signal) => {
    const command = 'while :; do echo a line; sleep 0.002; done';
    const ids = await Promise.all(Array.from({ length: 4 }, () => bob.start({ command })));
    await lanes(20, signal, (turn) => {
      const wait = { id: ids[turn % 4], for: [{ kind: 'port', port: 1 }] };
      return bob.ask('POST', '/v1/wait', { waits: [wait], timeoutMs: 500 });
    });
    for (const id of ids) await bob.ask('DELETE', `/v1/processes/${id}?force=true`);
  },
  'large requests': async (bob, signal) => {
    const bodies = [
      `{"command":"true","labels":{${Array.from({ length: 40_000 }, (_, n) => `"l${n}":"v"`).join(',')}}}`,
      `{"argv":${'['.repeat(400_000)}${']'.repeat(400_000)}}`,
      JSON.stringify({ argv: ['true', ...Array.from({ length: 200_000 }, () => 'x')] }),
      JSON.stringify({ command: 'x'.repeat(900 * KiB) }),
    ];
    await lanes(4, signal, (turn) => post(bob, bodies[turn % bodies.length]));
  },
  'codex messages of 16 MiB': async (bob, signal) => {
    const url = `ws://127.0.0.1:${bob.port}/codex`;
    const headers = { Authorization: `Bearer ${bob.token}` };
    const socket = new WebSocket(url, { headers, perMessageDeflate: false });
    socket.on('error', () => undefined);
    await once(socket, 'open');
    const call = async (id, method, params) => {
      const answered = Promise.race([once(socket, 'message'), once(socket, 'close')]);
      socket.send(JSON.stringify({ id, method, params }));
      await answered;
    };
    await call(1, 'initialize', { clientName: 'bench', resumeSessionId: null });
    socket.send(JSON.stringify({ method: 'initialized', params: {} }));
    for (let id = 2; id < 22 && !signal.aborted && socket.readyState === WebSocket.OPEN; id += 1) {
      const write = { processId: 'none', chunk: 'A'.repeat(15 * MiB), writeId: String(id) };
      const words = Array.from({ length: 1_000_000 }, () => 'arguments');
      const start = { processId: `p${id}`, argv: words, cwd: 'file:///', env: {}, tty: false };
      await (id % 2 === 0
        ? call(id, 'process/write', write)
        : call(id, 'process/start', { ...start, pipeStdin: false }));
    }
    socket.terminate();
  },
  'daemons and orphans': async (bob, signal) => {
    const ids = [];
    const daemon = 'setsid sleep 60 >/dev/null 2>&1 &';
    await lanes(4, signal, async (turn) => {
      if (turn >= 150) return undefined;
      const answer = await post(bob, { command: daemon });
      if (answer.status === 200) ids.push(JSON.parse(answer.text).process.id);
      return answer;
    });
    await lanes(4, signal, () => post(bob, { command: '(sleep 0.01 &) ; (sleep 0.02 &) ; true' }));
    for (const id of ids) await bob.ask('DELETE', `/v1/processes/${id}?force=true`);
  },
  floods: async (bob, signal) => {
    const ids = await Promise.all(
      Array.from({ length: 2 }, () => bob.start({ command: 'yes a line of the flood' })),
    );
    await lanes(2, signal, (turn) =>
      bob.ask('GET', `/v1/processes/${ids[turn % 2]}/events?maxBytes=${4 * MiB}`),
    );
    for (const id of ids) await bob.ask('DELETE', `/v1/processes/${id}?force=true`);
  },
  'a dead mount': async (bob, signal) => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-dead-'));
    const mount = spawn('python3', [DEAD_MOUNT, folder], { stdio: ['pipe', 'pipe', 'ignore'] });
    const gone = once(mount, 'exit');
    const mounted = await Promise.race([once(mount.stdout, 'data').then(() => true), gone]);
    if (mounted !== true) throw new Error('nothing can be mounted here');
    const starts = [
      { command: 'true', cwd: folder },
      { argv: ['true'], cwd: folder },
      { argv: ['program'], env: { PATH: `${folder}:/usr/bin` } },
    ];
    const asked = lanes(6, signal, (turn) => post(bob, starts[turn % starts.length]));
    await Promise.race([asked, stopped(signal)]);
    mount.stdin.end();
    await gone;
    await asked;
    rmSync(folder, { recursive: true, force: true });
  },
};

function stopped(signal) {
  return signal.aborted ? undefined : once(signal, 'abort');
}
