// What agent-tty has around its sessions: the homes they lie in, the doctor, the skills. The numbers in brackets are its
// checks.
import { chmodSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { endServer } from '../../src/cli/local/server.ts';
import { onCleanup, stopKeeper, temporaryFolder } from '../support/hosts.ts';
import { startTty, shim, type Reported } from '../support/tty-commands.ts';

/** A user with a home directory, and nothing named by a variable. */
class User {
  readonly folder = temporaryFolder();
  readonly registry = join(this.folder, '.local/state/holdfast/homes.json');
  readonly ownHome = join(this.folder, '.holdfast');

  constructor() {
    onCleanup(() => stopKeeper(this.ownHome));
  }

  tty(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Reported> {
    return startTty(shim, ['--json', ...args], {
      AGENT_TTY_HOME: undefined,
      HOLDFAST_HOME: undefined,
      XDG_STATE_HOME: undefined,
      HOME: this.folder,
      SHELL: '/bin/sh',
      ...env,
    });
  }

  async result(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<unknown> {
    const reported = await this.tty(args, env);
    if (!reported.envelope?.ok)
      throw new Error(`${args.join(' ')}: ${reported.stdout}${reported.stderr}`);
    return reported.envelope.result;
  }

  otherHome(name: string): string {
    const home = join(this.folder, name);
    mkdirSync(home, { mode: 0o700 });
    onCleanup(() => stopKeeper(home));
    return home;
  }
}

describe('homes', () => {
  it('[TM93] (34, 35) are noted when they get a session, listed without waking anyone, collected together and forgotten', async () => {
    const user = new User();
    const other = user.otherHome('other');
    await user.result(['create', '--', 'cat']);
    const ended = await user.result(['create', '--home', other, '--', 'true']);
    const { sessionId } = ended as { sessionId: string };
    await user.result(['wait', sessionId, '--exit', '--home', other]);
    expect(statSync(user.registry).mode & 0o777).toBe(0o600);
    const rows = async (...flags: string[]): Promise<unknown> =>
      ((await user.result(['home', 'list', ...flags])) as { homes: unknown }).homes;
    const own = { path: user.ownHome, activeSessions: 1, totalSessions: 1 };
    expect(await rows()).toEqual([expect.objectContaining(own)]);
    expect(await rows('--all')).toMatchObject([
      own,
      { path: other, activeSessions: 0, totalSessions: 1 },
    ]);
    // One that is named is swept alone, and stays on the list.
    expect(await user.result(['gc', '--dry-run', '--home', other])).toMatchObject({
      homes: [{ home: other, removedSessions: [sessionId], deregistered: false }],
    });
    expect(await user.result(['gc', '--all-homes'])).toMatchObject({
      homes: [
        { home: user.ownHome, removedSessions: [], deregistered: false },
        { home: other, removedSessions: [sessionId], deregistered: true },
      ],
      removedSessionCount: 1,
      deregisteredHomes: [other],
    });
    expect(await user.result(['home', 'forget', user.ownHome])).toEqual({
      path: user.ownHome,
      forgotten: true,
    });
    expect(await user.result(['home', 'forget', user.ownHome])).toMatchObject({ forgotten: false });
    expect(await rows('--all')).toEqual([]);
  });

  it('[TM93] (35) a list that is damaged or missing is empty, and a relative XDG path is not followed', async () => {
    const user = new User();
    mkdirSync(join(user.folder, '.local/state/holdfast'), { recursive: true });
    for (const text of ['{', '{"homes":[{"path":"relative","lastSeenAt":""},7]}', '[]']) {
      writeFileSync(user.registry, text);
      expect(await user.result(['home', 'list', '--all'])).toEqual({ homes: [] });
    }
    rmSync(user.registry);
    const relative = { XDG_STATE_HOME: 'somewhere' };
    await user.result(['create', '--', 'true'], relative);
    expect(readFileSync(user.registry, 'utf8')).toContain(user.ownHome);
  });
});

describe('tty doctor', () => {
  it('[TM94] (40) names each check once, skips what cannot be tried, and exits with 1 when one fails', async () => {
    const user = new User();
    const home = user.otherHome('checked');
    const reported = await user.tty(['doctor', '--home', home]);
    type Checked = { ok: boolean; checks: Record<string, { name: string; status: string }[]> };
    const checksOf = ({ envelope }: Reported): [boolean, Record<string, string>] => {
      const { ok, checks } = envelope.result as Checked;
      const all = Object.values(checks).flat();
      const byName = Object.fromEntries(all.map(({ name, status }) => [name, status]));
      expect(Object.keys(byName)).toHaveLength(all.length);
      return [ok, byName];
    };
    const [ok, checks] = checksOf(reported);
    expect([reported.code, ok, new Set(Object.values(checks))]).toEqual([
      0,
      true,
      new Set(['pass']),
    ]);
    expect(reported.envelope.result).toMatchObject({
      capabilities: expect.arrayContaining([
        { name: 'screenshot', status: 'available' },
      ]) as unknown,
    });
    await stopKeeper(home);
    chmodSync(home, 0o777);
    const failed = await user.tty(['doctor', '--home', home]);
    expect(failed.code).toBe(1);
    expect(checksOf(failed)).toMatchObject([
      false,
      { home_isolation: 'fail', 'socket-viable': 'skip', screenshot_viable: 'pass' },
    ]);
  });
});

describe('skills', () => {
  it('[TM95] (39) are listed, printed and found; one that is not there exits with 1; help names them first', async () => {
    const user = new User();
    expect(await user.result(['skills', 'list'])).toMatchObject({
      skills: [
        { name: 'agent-tty', source: 'bundled' },
        { name: 'dogfood-tui', source: 'bundled' },
      ],
    });
    const got = (await user.result(['skills', 'get', 'agent-tty'])) as Record<string, string>;
    expect(got).toMatchObject({ name: 'agent-tty', source: 'bundled' });
    expect(readFileSync(got['path'] ?? '', 'utf8')).toBe(got['content']);
    const { content, path: file = '', ...place } = got;
    expect(content).toContain('agent-tty run ID');
    expect(await user.result(['skills', 'path', 'agent-tty'])).toEqual({
      ...place,
      path: dirname(file),
    });
    const missing = await user.tty(['skills', 'get', 'cooking']);
    expect(missing).toMatchObject({
      code: 1,
      envelope: {
        ok: false,
        command: 'skills get',
        error: {
          code: 'SKILL_NOT_FOUND',
          message: expect.stringContaining('Skill not found.') as string,
        },
      },
    });
    const help = await startTty(shim, ['help'], {});
    expect(help.stdout.split('\n')[2]).toContain('skills get agent-tty');
  });

  it('[TM95] (39) a dashboard is a page in a browser: it prints the link that signs one in', async () => {
    const user = new User();
    onCleanup(async () => void (await endServer(user.ownHome)));
    for (const name of ['dashboard', 'd'])
      expect(await user.tty([name])).toMatchObject({
        code: 0,
        envelope: {
          ok: true,
          command: 'dashboard',
          result: {
            url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/#code=[\w-]{22}$/) as string,
          },
        },
      });
  });
});
