// Where the time of one start and wait goes, on the clock that all processes share: the client's own times, the server's
// from Node's diagnostics channels (told by the probe), the keeper's from the journal, the child's by the child itself.

import { told } from './keeper.mjs';
import { median, nowMs } from './statistics.mjs';

/** When the wall clock began, on the other one. */
const wallBeganMs = performance.timeOrigin + performance.now() - nowMs();
const TRACES = 60;
const CLOCK = 'clock_gettime(CLOCK_MONOTONIC)*1000';
/** Prints when it runs and when it is about to end. */
const STAMPS = `perl -MTime::HiRes=clock_gettime,CLOCK_MONOTONIC -e 'printf "%.6f ", ${CLOCK}; printf "%.6f\\n", ${CLOCK}'`;

/** Medians of many, in their order. */
export async function traceLines(server, client) {
  const traces = [];
  for (let turn = 0; turn < TRACES; turn += 1) traces.push(await trace(server, client));
  const points = Object.keys(traces[0])
    .map((point) => ({ point, atMs: median(traces.map((each) => each[point])) }))
    .sort((one, other) => one.atMs - other.atMs);
  return points.map(({ point, atMs }, index) => {
    const sinceMs = atMs - (points[index - 1]?.atMs ?? 0);
    return `${atMs.toFixed(3).padStart(7)} ms  +${sinceMs.toFixed(3)}  ${point}`;
  });
}

async function trace(server, { start, wait }) {
  await told(server.traceSocket);
  const beganMs = nowMs();
  const { id } = await start({ command: STAMPS });
  const startedMs = nowMs();
  const { output } = await wait(id);
  const endedMs = nowMs();
  const { requests, answers } = await told(server.traceSocket);
  const { events } = await server.call('GET', `/v1/processes/${id}/events`);
  // A journal has whole milliseconds of the wall clock: half of one more, in the middle of many.
  const keeperMs = (kind) => events.find((event) => event.kind === kind).wallMs + 0.5 - wallBeganMs;
  const [runsMs, endsMs] = output.trim().split(' ').map(Number);
  const points = {
    'client: sends the start': beganMs,
    'server: has the start': requests[0],
    'keeper: has started the child': keeperMs('started'),
    'child: runs': runsMs,
    'server: has answered the start': answers[0],
    'client: has the answer, sends the wait': startedMs,
    'server: has the wait': requests[1],
    'child: is about to end': endsMs,
    'keeper: knows the exit': keeperMs('exited'),
    'client: has the answer': endedMs,
  };
  return Object.fromEntries(Object.entries(points).map(([point, atMs]) => [point, atMs - beganMs]));
}
