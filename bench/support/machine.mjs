// What else the machine was doing: on a shared machine a figure is worth as much as the quiet around it.

import { readFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

/** All of Linux's user-visible clocks count hundredths. */
const TICKS_PER_SECOND = 100;
const CALM_CORES = 0.1;

/** Busy time of the whole machine, and of this program with every descendant that has been reaped, in seconds. */
function busySeconds() {
  const [user, nice, system, , , irq, softIrq, steal] = readFileSync('/proc/stat', 'latin1')
    .split('\n', 1)[0]
    .split(/\s+/)
    .slice(1)
    .map(Number);
  const text = readFileSync('/proc/self/stat', 'latin1');
  const own = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 15)
    .map(Number);
  const sum = (ticks) => ticks.reduce((total, each) => total + each, 0) / TICKS_PER_SECOND;
  return { all: sum([user, nice, system, irq, softIrq, steal]), own: sum(own) };
}

/** Begins watching; the answer tells how many cores others kept busy since. Ask after the keeper has left. */
export function watchMachine() {
  const [before, beganMs] = [busySeconds(), performance.now()];
  return () => {
    const after = busySeconds();
    const seconds = (performance.now() - beganMs) / 1000;
    const others = Math.max(0, after.all - before.all - (after.own - before.own)) / seconds;
    return { seconds, othersCores: others, load: loadavg()[0] };
  };
}

/** Waits until the machine is calm for a second, or for so long. */
export async function calmMachine(longestMs) {
  for (const endMs = performance.now() + longestMs; performance.now() < endMs;) {
    const watched = watchMachine();
    await sleep(1000);
    if (watched().othersCores < CALM_CORES) return;
  }
}

export function machineLine() {
  const model =
    /model name\s*: (.*)/.exec(readFileSync('/proc/cpuinfo', 'latin1'))?.[1] ?? 'unknown processor';
  const kernel = readFileSync('/proc/sys/kernel/osrelease', 'latin1').trim();
  return `${availableParallelism()} cores (${model}), Linux ${kernel}, Node ${process.version}, load ${loadavg()[0].toFixed(2)}`;
}
