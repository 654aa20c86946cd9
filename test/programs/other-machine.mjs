// What the system calls of this machine do for an embedded host: `npm run test:arm64` compares the lines of two machines.
// A missing program or directory is not among them: the vfork of qemu is a fork, so that the child's error does not come back.
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { embed } from '../../dist/index.js';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-machine-'));
const holdfast = await embed({ folder });
const cwd = folder;

function tell(name, value) {
  process.stdout.write(`${name}: ${JSON.stringify(value)}\n`);
}

const mixed = await holdfast.run('echo out; echo err >&2; exit 3', { cwd, streams: 'separate' });
tell('exit code and streams', [mixed.exitCode, mixed.stdout, mixed.stderr]);

const cat = await holdfast.start('cat; exit 4', { cwd, stdin: 'pipe' });
await cat.stdin.write('x'.repeat(300_000));
await cat.stdin.end('\nend\n');
const input = await cat.waitForExit();
let echoed = '';
for await (const { text } of cat.logs()) echoed += text;
tell('input', [input?.outcome, echoed.length, echoed.endsWith('x\nend\n')]);

const big = await holdfast.run('seq 1 100000', { cwd, maxBytes: 1_000_000 });
tell('output', [big.stdout.length, createHash('sha256').update(big.stdout).digest('hex')]);

const stubborn = await holdfast.start(
  'trap "" TERM; (setsid sleep 1000 &) ; echo set; sleep 1000',
  { cwd },
);
await stubborn.waitForLog(/set/);
const { survivors, escalated } = await stubborn.terminate({ graceMs: 200 });
tell('termination', [survivors, escalated, (await stubborn.waitForExit())?.outcome]);

const terminal = await holdfast.run(
  'stty size; test -t 0 && echo terminal; stty -echo; stty -a | grep -o -- "-echo " ',
  {
    cwd,
    streams: 'pty',
    size: { cols: 99, rows: 33 },
  },
);
tell('terminal', [terminal.exitCode, terminal.stdout]);

const nobody = await holdfast.run(
  'ls /proc/self/fd | wc -l; ps -o sid= -p $$ | grep -cw $$; grep SigIgn /proc/self/status',
  { cwd },
);
tell('descriptors, session, signals', nobody.output.text);

const listener = await holdfast.start(
  ['node', '-e', 'require("net").createServer().listen(0, "127.0.0.1")'],
  { cwd },
);
tell('port', typeof (await listener.waitForPort(undefined, { timeoutMs: 60_000 })));
await listener.terminate();

const shell = await holdfast.terminal({ cwd, shell: '/bin/bash' });
const typed = await shell.run('echo $((6 * 7)); (exit 5)');
tell('run in a shell', [typed.exitCode, typed.output]);
await shell.close();

await holdfast.close();
rmSync(folder, { recursive: true });
