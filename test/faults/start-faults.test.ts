// System calls fail while a keeper starts: it is ready all the same, or says why it is not, leaves, and the next one starts.
// Some of them in every test run, all with FAULTS=1.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { root } from '../support/command-line.ts';
import { overKeeper, startProcess, temporaryFolder, waitFor } from '../support/hosts.ts';
import { injectionProblem } from './injection.ts';

const SAMPLE = ['mkdir ENOSPC', 'bind EACCES'];
const MORE = [
  'mkdir EACCES',
  'flock ENOLCK',
  'bind ENOSPC',
  'listen ENOBUFS',
  'pwrite64 ENOSPC',
  'pwrite64 EIO',
  'rename EIO',
  'ftruncate EIO',
  'prctl EPERM',
  'unlink EACCES',
  'getdents64 ENOMEM',
];
const faults = process.env['FAULTS'] === undefined ? SAMPLE : [...SAMPLE, ...MORE];

/** What a keeper tells whoever started it, and its exit code. One that is ready leaves as idle. */
async function started(home: string, fault: string): Promise<[string, number]> {
  const [call, error] = fault.split(' ');
  const trace = ['-o', '/dev/null', '-e', `trace=${call}`];
  const injected = ['-e', `inject=${call}:error=${error}:when=1+`];
  const keeper = [join(root, 'dist/keeper/main.js'), '--home', home, '--idle-ms', '1'];
  const strace = spawn('strace', [...trace, ...injected, process.execPath, ...keeper], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  const ended = once(strace, 'exit') as Promise<[number]>;
  const said = await text(strace.stdio[3] as Readable);
  return [said.trim(), (await ended)[0]];
}

describe.skipIf(injectionProblem() !== undefined)('a keeper that starts', () => {
  it.each(faults)(
    '[X42] while %s: it is ready or says why, and the next one starts',
    async (fault) => {
      const home = temporaryFolder();
      const [said, code] = await started(home, fault);
      expect([said === 'ready', code]).toEqual(said === 'ready' ? [true, 0] : [false, 1]);
      expect(said).not.toBe('');
      const link = await overKeeper({ folder: home });
      const id = await startProcess(link, { command: 'exit 7' });
      const { process: ran } = await waitFor(link, id, { kind: 'exit' });
      expect(ran.outcome).toEqual({ kind: 'exit', code: 7 });
    },
  );
});
