// What an agent waits for, printing as such programs do: a build with a progress bar and colours, a server that says when
// it is ready, tests of which one fails. Arguments: which, and how many times faster than true time.
import { setTimeout as sleep } from 'node:timers/promises';

const [, , which, speed] = process.argv;
const pause = (seconds) => sleep((seconds * 1000) / Number(speed));
const say = (text) => process.stdout.write(text);

const jobs = {
  async build() {
    for (let file = 1; file <= 600; file += 1) {
      const percent = Math.floor(file / 6);
      const bar = '='.repeat(percent / 4).padEnd(25);
      say(`\r\x1b[2K\x1b[32m[${bar}]\x1b[0m ${percent}% compiling src/module-${file}.ts`);
      if (file % 60 === 0)
        say(`\r\x1b[2K\x1b[33mwarning\x1b[0m: src/module-${file}.ts: unused import\n`);
      await pause(0.1);
    }
    say('\r\x1b[2K\x1b[1mbuilt 600 modules\x1b[0m\n');
    return 0;
  },
  async server() {
    for (let step = 1; step <= 40; step += 1) {
      say(`bundling ${step}/40\n`);
      await pause(0.2);
    }
    say('ready on http://127.0.0.1:3000\n');
    for (let request = 1; ; request += 1) {
      say(`GET /assets/${request}.js 200\n`);
      await pause(0.5);
    }
  },
  async tests() {
    for (let test = 1; test <= 500; test += 1) {
      if (test === 321) say('not ok 321 - adds\n  expected: 3\n  actual: 4\n  at sum.test.ts:12\n');
      else say(`\x1b[32mok\x1b[0m ${test} - module ${test} does what it should\n`);
      await pause(0.05);
    }
    say('# 499 passed, 1 failed\n');
    return 1;
  },
};

process.exitCode = await jobs[which]();
