// Now and then prints the time at which it prints, on the clock that all processes share (CLOCK_MONOTONIC).

import { writeSync } from 'node:fs';

const [count, pauseMs] = process.argv.slice(2).map(Number);
let printed = 0;

function print() {
  writeSync(1, `${process.hrtime.bigint()}\n`);
  printed += 1;
  if (printed < count) setTimeout(print, pauseMs * (0.5 + Math.random()));
}

setTimeout(print, 500);
