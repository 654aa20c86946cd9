// `holdfast ssh-command` as sshd starts it: the command of the client in a variable, its connection as standard streams.

import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { main, Place, Running } from '../support/command-line.ts';
import { gate } from '../support/hosts.ts';

let place: Place;
beforeAll(() => {
  place = new Place();
});
afterAll(() => place.close());

function ssh(command?: string): Running {
  const given = command === undefined ? {} : { SSH_ORIGINAL_COMMAND: command };
  return new Running(['ssh-command'], { env: { ...place.env, SHELL: '/bin/sh', ...given } });
}

/** As with `ssh -t`. */
function sshOnTerminal(command: string): Running {
  const words = ['run', '--pty', '--stdin', '--', process.execPath, main, 'ssh-command'];
  const env = { ...place.env, SHELL: '/bin/sh', SSH_ORIGINAL_COMMAND: command, NO_COLOR: '1' };
  // Inside a process of this home it would act for that process's owner.
  const inner = ['--home', place.home];
  return new Running([...words, ...inner], { env: { ...env, HOLDFAST_HOME: place.outerHome } });
}

describe('ssh-command', () => {
  it('[C91] passes streams and input byte for byte, and ends with the exit code', async () => {
    const running = ssh(
      'cat; printf "\\377\\000" ; echo oops >&2; echo "[$SSH_ORIGINAL_COMMAND]"; exit 3',
    );
    running.child.stdin?.end(Buffer.from([0xfe, 0, 10]));
    const { bytes, stderr, code } = await running.ended;
    expect([...bytes]).toEqual([0xfe, 0, 10, 0xff, 0, ...Buffer.from('[]\n')]);
    expect([stderr, code]).toEqual(['oops\n', 3]);
    const script = ssh();
    script.child.stdin?.end('echo from a script; exit 4\n');
    expect(await script.ended).toMatchObject({ stdout: 'from a script\n', code: 4 });
    const missing = await ssh('no-such-program').ended;
    expect(missing.code).toBe(127);
  });

  it('[C92] a command outlives its connection, and a name reaches it with all its output, also after its exit', async () => {
    const { wait, open } = gate();
    const first = ssh(`@build echo begun; ${wait}; echo built; exit 5`);
    await first.until('stdout', 'begun');
    first.child.kill('SIGKILL');
    await once(first.child, 'exit');
    const again = ssh('@build echo not again');
    await again.until('stderr', 'attached to');
    open();
    expect(await again.ended).toMatchObject({ stdout: 'begun\nbuilt\n', code: 5 });
    expect(again.text('stderr')).toContain('was not started again');
    const late = await ssh('@build').ended;
    expect(late).toMatchObject({ stdout: 'begun\nbuilt\n', stderr: '', code: 5 });
    const unknown = await ssh('@unknown').ended;
    expect([unknown.code, unknown.stdout]).toEqual([125, '']);
    expect(unknown.stderr).toContain('No process has the name "unknown"');
  });

  it('[C93] a terminal outlives its connection, and is attached to again', async () => {
    const first = sshOnTerminal(
      '@work echo "in a $(tty | cut -c1-8)"; read x; echo "got $x"; exit 6',
    );
    await first.until('stdout', 'in a /dev/pts');
    first.child.kill('SIGKILL');
    await once(first.child, 'exit');
    await place.run('shutdown', '--home', place.outerHome);
    const again = sshOnTerminal('@work');
    await again.until('stdout', 'in a /dev/pts');
    again.child.stdin?.write('typed\r');
    const { stdout, code } = await again.ended;
    expect(stdout).toContain('got typed');
    expect(code).toBe(6);
  });
});
