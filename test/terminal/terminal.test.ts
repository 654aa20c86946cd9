// What a person sees of a command that waits, and how logs are narrowed down: the built program on a real terminal and
// through pipes.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { main, Place, withoutFirstTimes } from '../support/command-line.ts';

let place: Place;
beforeAll(() => {
  place = new Place();
});
afterAll(() => place.close());

/** Starts a command of ours on a terminal that a keeper holds; answers the id of what runs there. */
function onTerminal(...args: string[]): Promise<string> {
  const [command = '', ...rest] = args;
  const inner = [main, command, '--home', place.home, ...rest];
  return place.background('--pty', '--', process.execPath, ...inner);
}

async function shownBy(id: string): Promise<{ code: number | null; shown: string }> {
  const { code } = await place.run('wait', id, '--for', 'closed');
  return { code, shown: (await place.run('logs', id)).stdout };
}

describe('run on a terminal', () => {
  it('[SV5] shows the time in a line that is gone before anything else, and how it ended, in colours', async () => {
    const fifo = join(place.folder, 'go');
    spawnSync('mkfifo', [fifo]);
    const id = await onTerminal('run', `echo one; read _ < ${fifo}; echo two; exit 3`);
    while (!/one\r\n[^]*detaches/.test((await place.run('logs', id)).stdout)) continue;
    writeFileSync(fifo, '\n');
    const { code, shown } = await shownBy(id);
    expect(code).toBe(3);
    expect(withoutFirstTimes(shown)).toMatch(
      // oxlint-disable-next-line no-control-regex
      /^one\r\n(\r\x1b\[K\x1b\[2m[\d.]+s {2}Ctrl-C interrupts, Ctrl-\\ detaches {2}echo one.*?\x1b\[0m)+\r\x1b\[Ktwo\r\n\x1b\[31mholdfast: exit 3 \([\d.]+s\)\.\x1b\[0m\r\n$/,
    );
  });

  it('[SV5] never writes into a line that the process has not ended', async () => {
    const { shown } = await shownBy(
      await onTerminal('run', 'printf "50%%"; sleep 1.4; echo " done"'),
    );
    expect(withoutFirstTimes(shown)).toMatch(/^50% done\r\n/);
  });

  it('[SV5] Ctrl-\\ lets go of the process at once, which goes on', async () => {
    const id = await onTerminal('run', '--name', 'kept', 'echo up; sleep 300');
    await place.run('wait', id, '--for', 'text=detaches');
    await place.run('send', id, '-n', '\x1c');
    const { code, shown } = await shownBy(id);
    expect(code).toBe(123);
    expect(shown).toMatch(/left running: \w+\. Stop it with "holdfast stop/);
    expect((await place.run('ps')).stdout).toMatch(/\trunning\t.*\tkept\t/);
    await place.run('stop', 'kept');
  });

  it('[SV5] piped, with NO_COLOR or on a dumb terminal there are plain lines only', async () => {
    const [piped, plain] = await Promise.all([
      place.run('run', 'sleep 1.2; echo x; exit 3'),
      place.onTerminal('run', 'sleep 1.2; echo x; exit 3'),
    ]);
    expect(piped).toMatchObject({ code: 3, stdout: 'x\n', stderr: '' });
    expect(plain).toEqual({ code: 3, shown: 'x\r\n' });
  });

  it('[SV5] ps tells states apart by colour, and wait shows the time', async () => {
    await place.finished('--name', 'failed', 'exit 3');
    const { shown } = await shownBy(await onTerminal('ps', '--all'));
    expect(shown).toMatch(/\x1b\[1mID .*COMMAND\x1b\[0m\r\n/); // oxlint-disable-line no-control-regex
    expect(shown).toMatch(/\x1b\[31m\w{8}.*exit 3.*failed.*\x1b\[0m\r\n/); // oxlint-disable-line no-control-regex
    const id = await place.background('--stdin', 'read x');
    const waiting = await onTerminal('wait', id);
    await place.run('wait', waiting, '--for', 'text=Ctrl-C stops waiting  read x');
    await place.run('send', id, 'go');
    const waited = await shownBy(waiting);
    expect(waited.shown).toMatch(/\r\x1b\[K\w{26} {2}exit 0\r\n$/); // oxlint-disable-line no-control-regex
  });
});

describe('logs', () => {
  it('[SV3] --since takes a duration or a time, and begins with what was printed then', async () => {
    const id = await place.background('--stdin', 'echo early; read x; echo late; echo later >&2');
    await place.run('wait', id, '--for', 'text=early');
    // The wall clock is what is asked about: what follows is at least a millisecond later.
    const middle = new Date(Date.now() + 1).toISOString();
    await place.run('send', id, 'go');
    await place.run('wait', id, '--for', 'closed');
    const late = await place.run('logs', id, '--since', middle);
    expect([late.stdout, late.stderr]).toEqual(['late\n', 'later\n']);
    expect((await place.run('logs', id, '--since', '1h')).stdout).toBe('early\nlate\n');
    expect((await place.run('logs', id, '--since', '2001-01-01')).stdout).toBe('early\nlate\n');
    expect((await place.run('logs', id, '--since', '9999-01-01')).stdout).toBe('');
    const { stdout } = await place.run('logs', id, '--since', middle, '--tail', '2');
    expect(stdout).toBe('late\n');
    const wrong = await place.run('logs', id, '--since', 'yesterday');
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('neither a duration') });
  });

  it('[SV3] --grep gives whole lines as they are, seen without colours, each on its stream; --tail counts them', async () => {
    const id = await place.finished(
      String.raw`seq 1 30; printf 'plain err\n' >&2; printf '\033[31mEr\033[0mr 1\r\nerr end'`,
    );
    const grep = async (...args: string[]) => place.run('logs', id, '--grep', ...args);
    expect((await grep('^2')).stdout).toBe('2\n20\n21\n22\n23\n24\n25\n26\n27\n28\n29\n');
    expect((await grep('^2', '--tail', '2')).stdout).toBe('28\n29\n');
    expect((await grep('^2', '--tail', '0')).stdout).toBe('');
    const both = await grep('^err', '-i');
    expect([both.stdout, both.stderr]).toEqual(['\x1b[31mEr\x1b[0mr 1\r\nerr end', '']);
    expect((await grep('err')).stderr).toBe('plain err\n');
    expect((await grep('(')).code).toBe(2);
    const json = await place.json('logs', id, '--grep', '^3');
    expect(json).toMatchObject({ ok: true, result: { text: '3\n30\n', omittedBytes: 0 } });
  });

  it('[SV3] -f goes on behind the last lines, and joins a line that was cut in two', async () => {
    const id = await place.background(
      '--stdin',
      'seq 1 9; printf "half"; read x; echo " whole"; echo no; echo hall',
    );
    await place.run('wait', id, '--for', 'text=half');
    const following = place.start('logs', id, '-f', '--grep', '[8-9]|ha', '--tail', '1');
    await following.until('stdout', '9\n');
    await place.run('send', id, 'go');
    expect((await following.ended).stdout).toBe('9\nhalf whole\nhall\n');
  });
});

it('[SV4] wait takes several conditions, of which the first counts, and "idle" for silence', async () => {
  const id = await place.background('echo up; sleep 300');
  const both = await place.run('wait', id, '--for', 'text=never', '--for', 'idle=100ms');
  expect(both).toMatchObject({ code: 0, stdout: `${id}  silence\n` });
  const two = ['wait', id, '--for', 'regex=^u.$', '--for', 'port=1', '--timeout', '20s'];
  expect((await place.run(...two)).stdout).toBe(`${id}  up\n`);
  expect((await place.run('wait', id, '--for', 'idle')).code).toBe(2);
  await place.run('stop', id);
});
