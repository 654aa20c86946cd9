// Makes docs/demo.gif, the picture of the README: opens a terminal with `holdfast tty`, runs the commands below in its
// shell, and exports the recording. Usage: npm run demo-gif
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const main = join(root, 'dist', 'cli', 'main.js');
const folder = mkdtempSync(join(tmpdir(), 'holdfast-demo-'));
/** The shell in the picture has a home of its own, so that its server and keeper are not those that record it. */
const home = join(folder, 'project');
const recorder = join(folder, 'recorder');

const READING_MS = 1500;
const COMMANDS = [
  '# Start a server, and a build in the background. Wait for a line.',
  'holdfast serve > server.log & sleep 1',
  'holdfast run --background --name build ./build.sh',
  'holdfast wait build --for text=linking',
  '# Kill the server. The build goes on, and its exit code is known.',
  'kill -9 %1; wait',
  'holdfast wait build; echo "exit code $?"',
  'holdfast logs build --tail 2',
  '# Stop a process and everything that it started.',
  'holdfast run -b --name web "setsid sleep 99 & sleep 99"',
  'holdfast stop web',
  '# No output was lost: holdfast ps --all, holdfast logs ID',
];
const BUILD = `for step in fetching compiling linking testing; do echo "$step ..."; sleep 2; done
echo "1 test failed"; exit 3`;

function holdfast(state, ...words) {
  const env = { ...process.env, HOLDFAST_HOME: state, SHELL: '/bin/bash' };
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...words], {
    env,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`holdfast ${words.join(' ')} ended with ${status}: ${stderr}`);
  return stdout;
}

function tty(...words) {
  return JSON.parse(holdfast(recorder, 'tty', ...words, '--json')).result;
}

try {
  mkdirSync(join(home, 'bin'), { recursive: true });
  const script = (path, text) =>
    writeFileSync(join(home, path), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  script('build.sh', BUILD);
  script('bin/holdfast', `exec '${process.execPath}' '${main}' "$@"`);
  writeFileSync(
    join(home, '.bashrc'),
    `PS1='\\[\\e[1;32m\\]$\\[\\e[0m\\] '; PATH=~/bin:$PATH; holdfast run true; clear\n`,
  );
  const environment = ['--env', `HOME=${home}`, '--cwd', home];
  const { sessionId } = tty('create', '--cols', '86', '--rows', '23', ...environment);
  tty('wait', sessionId, '--text', '$', '--timeout', '30000');
  const { seq } = tty('mark', sessionId, 'ready');
  for (const command of COMMANDS) {
    tty('run', sessionId, command, '--timeout', '60000');
    await sleep(READING_MS);
  }
  const file = join(root, 'docs', 'demo.gif');
  tty('record', 'export', sessionId, '--format', 'gif', '--from', String(seq), '--out', file);
  chmodSync(file, 0o644);
} finally {
  for (const state of [recorder, join(home, '.holdfast')]) holdfast(state, 'shutdown');
  rmSync(folder, { recursive: true, force: true });
}
