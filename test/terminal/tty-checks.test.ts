// What agent-tty checks or does wrong, and what is not in tty.test.ts: sessions that end by themselves, that are lost,
// that are many, that have long been used. The numbers in brackets are its checks (1–40) and defects (D1–D24).
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { onCleanup, stopKeeper, temporaryFolder } from '../support/hosts.ts';
import { sized } from '../support/slow.ts';
import { main, runTty, shim, startTty, type Reported } from '../support/tty-commands.ts';

type Facts = Record<string, unknown>;
type Inspected = { session: Facts; terminationCategory: string };

class Place {
  readonly home: string;
  constructor(home: string) {
    this.home = home;
  }

  tty(...args: string[]): Promise<Reported> {
    return runTty(shim, args, { AGENT_TTY_HOME: this.home, SHELL: '/bin/bash' });
  }

  async result<T = Facts>(...args: string[]): Promise<T> {
    const reported = await this.tty('--json', ...args);
    if (!reported.envelope?.ok)
      throw new Error(`${args.join(' ')}: ${reported.stdout}${reported.stderr}`);
    return reported.envelope.result;
  }

  async create(...args: string[]): Promise<string> {
    return (await this.result<{ sessionId: string }>('create', ...args)).sessionId;
  }

  async inspect(id: string): Promise<Inspected> {
    return this.result<Inspected>('inspect', id);
  }

  /** The cast and the events, as texts. */
  async records(id: string): Promise<string> {
    const texts = await Promise.all(
      ['asciicast', 'events'].map(async (format) => {
        const made = await this.result<{ artifactPath: string }>(
          'record',
          'export',
          id,
          '--format',
          format,
        );
        return readFileSync(made.artifactPath, 'utf8');
      }),
    );
    return texts.join('\n');
  }
}

function place(): Place {
  const home = join(temporaryFolder(), 'home');
  mkdirSync(home, { mode: 0o700 });
  onCleanup(() => stopKeeper(home));
  return new Place(home);
}

describe('sessions', () => {
  let shared: Place;

  beforeAll(() => {
    const home = mkdtempSync(join(tmpdir(), 'holdfast-tty-'));
    shared = new Place(home);
    return async () => {
      await stopKeeper(home);
      rmSync(home, { recursive: true, force: true });
    };
  });

  it('[TM43] (2) a command that ends at once is a success, and its session has exited', async () => {
    const id = await shared.create('--', 'sh', '-c', 'echo brief; exit 3');
    const waited = await shared.result('wait', id, '--exit');
    expect(waited).toMatchObject({ exitCode: 3 });
    const { session, terminationCategory } = await shared.inspect(id);
    expect(session).toMatchObject({ status: 'exited', exitCode: 3 });
    expect(terminationCategory).toBe('nonzero-exit');
  });

  it('[TM43] (4, 5) an idle time ends an idle session; 0 is none and is not kept', async () => {
    const [idle, never] = await Promise.all([
      shared.create('--idle-timeout-ms', '200', '--', 'cat'),
      shared.create('--idle-timeout-ms', '0', '--', 'cat'),
    ]);
    await shared.result('wait', idle, '--exit', '--timeout', '20000');
    expect((await shared.inspect(idle)).session).toMatchObject({
      status: 'exited',
      idleTimeoutMs: 200,
    });
    const { session } = await shared.inspect(never);
    expect(session).toMatchObject({ status: 'running' });
    expect(session).not.toHaveProperty('idleTimeoutMs');
    await shared.result('destroy', never, '--force');
  });

  it.each([
    ['bash, echo off', '/bin/bash', 'stty -echo'],
    ['sh', '/bin/sh', 'true'],
    ['a wide one', '/bin/bash', 'true', '--cols', '300'],
  ])('[TM44] (19) no mark and no sentinel is seen in %s', async (_name, shell, first, ...more) => {
    const id = await shared.create('--shell', shell, '--env', 'PS1=$ ', ...more);
    await shared.result('run', id, first);
    await shared.result('run', id, 'echo by-marks');
    await shared.result('run', id, 'echo by-sentinel', '--completion', 'sentinel');
    const { text } = await shared.result<{ text: string }>('snapshot', id, '--format', 'text');
    const records = await shared.records(id);
    for (const seen of [text, records]) {
      expect(seen).toContain('by-marks');
      expect(seen).toContain('by-sentinel');
      expect(seen).not.toMatch(/133;[A-Z]|\\137|\\u001b_|holdfast_|exit \$s/);
      expect(seen).not.toContain('\x1b_');
    }
    await shared.result('destroy', id, '--force');
  });

  const runs = sized(40, 120);

  it(`[TM45] (D12) a picture after ${runs} runs and a snapshot is there at once`, async () => {
    const id = await shared.create('--shell', '/bin/bash');
    const steps = Array.from({ length: runs }, (_, index) => ({ run: `echo line ${index}` }));
    await shared.result('batch', id, JSON.stringify(steps));
    await shared.result('snapshot', id);
    const { artifactPath } = await shared.result<{ artifactPath: string }>('screenshot', id);
    expect(readFileSync(artifactPath).subarray(1, 4).toString()).toBe('PNG');
    const { text } = await shared.result<{ text: string }>('snapshot', id, '--format', 'text');
    expect(text).toContain(`line ${runs - 1}`);
    await shared.result('destroy', id, '--force');
  });

  const created = sized(6, 20);

  it(`[TM45] (D10) ${created} created at once are ${created}, and none is an orphan`, async () => {
    const many = place();
    const ids = await Promise.all(Array.from({ length: created }, () => many.create('--', 'cat')));
    expect(new Set(ids).size).toBe(created);
    const { sessions } = await many.result<{ sessions: { sessionId: string; status: string }[] }>(
      'list',
    );
    expect(sessions.map(({ sessionId }) => sessionId).sort()).toEqual([...ids].sort());
    expect(new Set(sessions.map(({ status }) => status))).toEqual(new Set(['running']));
  });

  it('[TM46] (6, 27, D22) killed with its keeper a session has failed, says why, and is seen as it was', async () => {
    const lost = place();
    const id = await lost.create('--shell', '/bin/bash', '--env', 'PS1=$ ');
    // It ignores the signal from its first instruction on: nohup would begin to a moment later.
    await lost.result('run', id, "trap '' HUP; sleep 1000 >/dev/null 2>&1 & trap - HUP");
    await lost.result('run', id, 'echo before the end');
    const { session } = await lost.inspect(id);
    process.kill(Number(session['hostPid']), 'SIGKILL');
    const after = await lost.inspect(id);
    expect(after).toMatchObject({
      terminationCategory: 'host-death',
      session: { status: 'failed', failureOrigin: 'host-death', hostPid: null, exitCode: null },
    });
    expect(String(after.session['failureReason'])).not.toBe('');
    expect(await lost.result('list', '--all')).toMatchObject({ sessions: [{ status: 'failed' }] });
    const shot = await lost.result<{ text: string }>('snapshot', id, '--format', 'text');
    expect(shot.text).toContain('before the end');
    expect(await lost.result('screenshot', id)).toHaveProperty('artifactPath');
    expect(await lost.records(id)).toContain('before the end');
    const refused = await lost.tty('run', id, 'true', '--json');
    expect([refused.code, refused.envelope.error.code]).toEqual([4, 'SESSION_NOT_RUNNING']);
    // Nothing of the last screen is shown instead of what was asked wrongly.
    expect((await lost.tty('snapshot', id, '--format', 'none', '--json')).code).toBe(2);
    expect((await lost.tty('screenshot', id, '--profile', 'none', '--json')).code).toBe(2);
    // A program that ignores SIGHUP is still there, and is ended on request.
    expect(await lost.result('gc')).toMatchObject({
      homes: [{ skippedSessions: [{ sessionId: id, reason: 'active' }] }],
    });
    expect(await lost.result('destroy', id)).toEqual({ sessionId: id, destroyed: true });
    expect(await lost.result('gc', '--stale-only')).toMatchObject({ removedSessionCount: 1 });
    expect(await lost.result('list', '--all')).toEqual({ sessions: [] });
  });

  it('[TM47] (34) gc spares the living, the recent and those that were not lost', async () => {
    const swept = place();
    const living = await swept.create('--', 'cat');
    const [one, two] = [
      await swept.create('--', 'true'),
      await swept.create('--', 'sh', '-c', 'echo x'),
    ];
    for (const id of [one, two]) await swept.result('wait', id, '--exit');
    expect(await swept.result('gc', '--older-than', '1h')).toMatchObject({
      removedSessionCount: 0,
      homes: [
        {
          skippedSessions: expect.arrayContaining([
            { sessionId: living, reason: 'active' },
            { sessionId: one, reason: 'too-recent' },
          ]) as unknown,
        },
      ],
    });
    expect(await swept.result('gc', '--stale-only')).toMatchObject({ removedSessionCount: 0 });
    expect(await swept.result('gc', '--dry-run')).toMatchObject({ removedSessionCount: 2 });
    expect(await swept.result('gc')).toMatchObject({
      removedSessionCount: 2,
      homes: [{ skippedSessions: [{ sessionId: living, reason: 'active' }] }],
    });
    expect(await swept.result('list', '--all')).toMatchObject({
      sessions: [{ sessionId: living, status: 'running' }],
    });
  });

  it.runIf(process.getuid?.() === 0)(
    '[TM47] (34) gc reports what cannot be removed, removes the rest, and tries again the next time',
    async () => {
      const swept = place();
      const [stuck, other] = [await swept.create('--', 'true'), await swept.create('--', 'true')];
      for (const id of [stuck, other]) await swept.result('wait', id, '--exit');
      const { artifactPath } = await swept.result<{ artifactPath: string }>('screenshot', stuck);
      const busy = dirname(artifactPath);
      execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', busy]);
      try {
        expect(await swept.result('gc')).toMatchObject({
          homes: [
            {
              removedSessions: [other],
              skippedSessions: [
                { sessionId: stuck, reason: expect.stringContaining('EBUSY') as string },
              ],
            },
          ],
        });
      } finally {
        execFileSync('umount', [busy]);
      }
      expect(await swept.result('gc')).toMatchObject({ homes: [{ removedSessions: [stuck] }] });
    },
  );

  it('[TM48] (35, D23) every user has a private home of their own: nobody locks out another', async () => {
    const users = [temporaryFolder(), temporaryFolder()];
    for (const user of users) {
      onCleanup(() => stopKeeper(join(user, '.holdfast')));
      const env = { AGENT_TTY_HOME: undefined, HOLDFAST_HOME: undefined, HOME: user };
      const reported = await startTty(shim, ['create', '--json', '--', 'cat'], env);
      expect(reported.envelope).toMatchObject({ ok: true });
      expect(statSync(join(user, '.holdfast')).mode & 0o777).toBe(0o700);
      const listed = await startTty(shim, ['list', '--json'], env);
      expect(listed.envelope.result).toMatchObject({ sessions: [{ status: 'running' }] });
      expect((listed.envelope.result as { sessions: unknown[] }).sessions).toHaveLength(1);
    }
  });

  it('[TM49] (40) doctor names each check once, and exits with 1 when one fails', async () => {
    const home = join(temporaryFolder(), 'home');
    mkdirSync(home, { mode: 0o700 });
    const names = async (): Promise<[number | null, string[]]> => {
      const reported = await runTty(main, ['doctor', '--json', '--home', home], {});
      const { checks } = reported.envelope.result as { checks: { name: string }[] };
      return [reported.code, checks.map(({ name }) => name)];
    };
    const [code, checks] = await names();
    expect([code, new Set(checks).size]).toEqual([0, checks.length]);
    chmodSync(home, 0o777);
    expect(await names()).toEqual([1, checks]);
  });
});
