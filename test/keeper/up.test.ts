// `holdfast up`: keeper and server as one program in the foreground, also as process 1 of a pid namespace, as in a container.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { VERSION } from '../../src/base/version.ts';
import { firstLine, main, Place, type Running } from '../support/command-line.ts';
import { sized } from '../support/slow.ts';

const namespaces = spawnSync('unshare', ['--pid', '--fork', '--mount-proc', 'true']).status === 0;

let place: Place;
beforeEach(() => {
  place = new Place();
});
afterEach(() => place.close());

/** A program that is serving. */
async function up(...args: string[]): Promise<Running> {
  const running = place.start('up', ...args);
  await running.until('stdout', 'SIGTERM ends everything');
  return running;
}

async function status(): Promise<{ pid: number; server: { pid: number; url: string } }> {
  const { result } = await place.json('status');
  return result as unknown as { pid: number; server: { pid: number; url: string } };
}

describe('keeper and server in the foreground', () => {
  it('[UP1] the program itself is the keeper; SIGTERM gives every process its grace period, then ends all with exit code 0', async () => {
    const running = await up();
    const { pid, server } = await status();
    expect(pid).toBe(running.child.pid);
    await place.background(
      '--name',
      'trapped',
      'trap "echo bye; exit 5" TERM; echo set; while :; do sleep 0.05; done',
    );
    await place.run('wait', 'trapped', '--for', 'text=set');
    running.child.kill('SIGTERM');
    expect(await running.ended).toMatchObject({ code: 0, signal: null });
    expect(() => process.kill(server.pid, 0)).toThrow('ESRCH');
    const { stdout } = await place.run('logs', 'trapped');
    expect(stdout).toMatch(/^set\nbye\n/);
    expect((await place.json('inspect', 'trapped')).result).toMatchObject({
      process: { outcome: { kind: 'exit', code: 5 } },
    });
  });

  it('[UP2] a server that dies is started again on its port with its options; waits and processes go on', async () => {
    const running = await up('--allow-host', 'proxy.example');
    const before = await status();
    const id = await place.background('--stdin', 'read line; exit 4');
    const url = `${before.server.url}/readyz`;
    process.kill(before.server.pid, 'SIGKILL');
    await running.until('stderr', 'serves http');
    const after = await status();
    expect(after).toMatchObject({ pid: before.pid, server: { url: before.server.url } });
    expect(after.server.pid).not.toBe(before.server.pid);
    const answer = await fetch(url, { headers: { host: 'proxy.example' } });
    expect(answer.status).toBe(200);
    await place.run('send', id, 'x', '--eof');
    expect((await place.run('wait', id)).code).toBe(4);
  });

  it('[UP3] "restart" has the keeper start the next server, and cannot change its port', async () => {
    await up();
    const before = await status();
    expect(await place.run('restart', '--port', '4000')).toMatchObject({ code: 2 });
    expect(await place.run('restart')).toMatchObject({ code: 0 });
    const after = await status();
    expect(after).toMatchObject({ pid: before.pid, server: { url: before.server.url } });
    expect(after.server.pid).not.toBe(before.server.pid);
    // It is supervised, too.
    process.kill(after.server.pid, 'SIGKILL');
  });

  it('[UP4] a second one, and a port in use, are refused with the reason; nothing is left', async () => {
    const listener = createServer().listen(0, '127.0.0.1');
    await once(listener, 'listening');
    const { port } = listener.address() as AddressInfo;
    const refused = await place.start('up', '--port', String(port)).ended;
    listener.close();
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(`${port}`);
    expect((await place.json('status')).result).toMatchObject({ running: false });
    const running = await up();
    const second = await place.start('up').ended;
    expect([second.code, second.stderr]).toEqual([
      4,
      expect.stringContaining(`pid ${running.child.pid}`),
    ]);
  });

  it('[UP7] "status" is 0 while keeper and server answer, and says what runs and what is installed', async () => {
    await up();
    const { server } = await status();
    expect(await place.json('status')).toMatchObject({
      code: 0,
      result: { version: VERSION, installed: VERSION, server: { version: VERSION, answers: true } },
    });
    process.kill(server.pid, 'SIGSTOP');
    const stopped = await place.run('status');
    expect([stopped.code, stopped.stdout]).toEqual([
      11,
      expect.stringContaining('does not answer'),
    ]);
    process.kill(server.pid, 'SIGCONT');
    expect((await place.run('restart')).stdout).toContain(`version ${VERSION}`);
  });

  it('[UP5] "shutdown" ends it, with its server', async () => {
    const running = await up();
    const { server } = await status();
    expect(await place.run('shutdown')).toMatchObject({ code: 0 });
    expect(await running.ended).toMatchObject({ code: 0 });
    expect(() => process.kill(server.pid, 0)).toThrow('ESRCH');
  });
});

describe.skipIf(!namespaces)('as process 1', () => {
  /** Runs `up` as process 1 of a namespace, with a way to run commands there as `docker exec` does. */
  async function container(): Promise<{
    one: number;
    exec: (command: string) => string;
    over: Promise<unknown>;
  }> {
    const env = { ...process.env, ...place.env };
    const words = ['--pid', '--fork', '--mount-proc', '--kill-child', process.execPath, main, 'up'];
    const outer = spawn('unshare', words, { env, stdio: ['ignore', 'pipe', 'ignore'] });
    const over = once(outer, 'close');
    await firstLine(outer.stdout);
    const children = readFileSync(`/proc/${outer.pid}/task/${outer.pid}/children`, 'utf8');
    const one = Number(children.trim());
    const exec = (command: string): string => {
      const enter = ['--target', String(one), '--pid', '--mount', 'sh', '-c'];
      const script = `hf() { ${process.execPath} ${main} "$@"; }; ${command}`;
      return spawnSync('nsenter', [...enter, script], { env, encoding: 'utf8' }).stdout;
    };
    return { one, exec, over };
  }

  it('[UP6] reaps every orphan, cannot be killed from inside, and ends everything by SIGTERM', async () => {
    const { one, exec, over } = await container();
    const orphans = `for i in $(seq ${sized(200, 1000)}); do (setsid env -i sh -c "exit 0" &) ; done; echo $$ > /dev/null`;
    exec(`hf run '${orphans}'`);
    expect(exec(`hf run 'kill -9 1; echo "kill $?"'`)).toBe('kill 0\n');
    exec(
      `hf run -b --name kept 'trap "exit 5" TERM; echo set; while :; do sleep 0.05; done'; hf wait kept --for text=set`,
    );
    // Process 1 reaps them as they end: the loop ends when none is left.
    const count = `zombies() { cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '; };`;
    expect(exec(`${count} while [ "$(zombies)" != 0 ]; do :; done; echo none`)).toBe('none\n');
    process.kill(one, 'SIGTERM');
    expect(await over).toEqual([0, null]);
    expect((await place.json('inspect', 'kept')).result).toMatchObject({
      process: { outcome: { kind: 'exit', code: 5 } },
    });
  });

  it('[UP10] a killed server is started again; after kill -9 of process 1 the next one reports its processes as lost', async () => {
    const first = await container();
    const id = first.exec(`hf run -b --name kept 'echo here; sleep 1000'`).trim();
    first.exec(`hf wait kept --for text=here`);
    const killed = first.exec(
      `pid() { hf status --json | sed 's/.*"server":{[^}]*"pid":\\([0-9]*\\).*/\\1/;t;d'; }; old=$(pid); kill -9 $old; until new=$(pid) && [ -n "$new" ] && [ "$new" != "$old" ]; do :; done; echo again; hf status > /dev/null; echo $?`,
    );
    expect(killed).toBe('again\n0\n');
    expect(first.exec('hf ps -q').trim()).toBe(id);
    process.kill(first.one, 'SIGKILL');
    await first.over;
    const second = await container();
    const { process: lost } = (await place.json('inspect', id)).result as {
      process: { outcome: { kind: string } };
    };
    expect(lost.outcome.kind).toBe('lost');
    expect(second.exec(`hf logs ${id}`)).toBe('here\n');
    process.kill(second.one, 'SIGTERM');
    expect(await second.over).toEqual([0, null]);
  });
});
