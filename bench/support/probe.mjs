// Loaded into a keeper or a server by `--import`: tells its memory after a forced collection, on a socket of its own, and on another how
// long its main thread has been held up since the last question; writes its CPU profile when it leaves. It knows nothing of
// that, and what it starts inherits nothing of it.

import { subscribe } from 'node:diagnostics_channel';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const {
  BENCH_PROBE: path,
  BENCH_STALLS: stalls,
  BENCH_TRACE_SOCKET: trace,
  BENCH_PROFILE: profile,
  BENCH_PROFILE_NAME: name = 'keeper',
} = process.env;
delete process.env.BENCH_PROBE;
delete process.env.BENCH_STALLS;
delete process.env.BENCH_TRACE_SOCKET;
delete process.env.BENCH_PROFILE;
delete process.env.BENCH_PROFILE_NAME;
delete process.env.NODE_OPTIONS;
/** What a timer may be late by itself. */
const TICK_MS = 5;
if (path !== undefined) {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    collect();
    collect();
    socket.end(JSON.stringify({ ...process.memoryUsage(), cpu: process.cpuUsage() }));
  });
  server.listen(path);
  server.unref();
}

if (stalls !== undefined) {
  const schedule = `/proc/self/task/${process.pid}/schedstat`;
  let longest = { busyMs: 0, heldMs: 0 };
  const now = () => {
    const [busy, waited] = readFileSync(schedule, 'latin1').split(' ').map(Number);
    return { atMs: performance.now(), busyMs: busy / 1e6, waitedMs: waited / 1e6 };
  };
  let last = now();
  setInterval(() => {
    const next = now();
    // Without the time in which there was no processor for this thread.
    const heldMs = next.atMs - last.atMs - (next.waitedMs - last.waitedMs) - TICK_MS;
    const busyMs = next.busyMs - last.busyMs;
    longest = {
      busyMs: Math.max(longest.busyMs, busyMs),
      heldMs: Math.max(longest.heldMs, heldMs),
    };
    last = next;
  }, TICK_MS).unref();
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.end(JSON.stringify(longest));
    longest = { busyMs: 0, heldMs: 0 };
  });
  server.listen(stalls);
  server.unref();
}

// When each request came and its answer went, since the last question.
if (trace !== undefined) {
  let seen = { requests: [], answers: [] };
  const nowMs = () => Number(process.hrtime.bigint()) / 1e6;
  subscribe('http.server.request.start', () => seen.requests.push(nowMs()));
  subscribe('http.server.response.finish', () => seen.answers.push(nowMs()));
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.end(JSON.stringify(seen));
    seen = { requests: [], answers: [] };
  });
  server.listen(trace);
  server.unref();
}

// `--cpu-prof` is not allowed in NODE_OPTIONS. Written when the program leaves, or when it is asked for: a keeper leaves by _exit.
if (profile !== undefined) {
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.setSamplingInterval', { interval: 200 });
  session.post('Profiler.start');
  const file = join(profile, `${name}-${process.pid}.cpuprofile`);
  const write = () =>
    session.post('Profiler.stop', (error, result) => {
      if (error) throw error;
      mkdirSync(profile, { recursive: true });
      writeFileSync(file, JSON.stringify(result.profile));
    });
  process.once('exit', write);
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    process.off('exit', write);
    write();
    socket.end(JSON.stringify({ file }));
  });
  server.listen(`${path}.profile`);
  server.unref();
}
