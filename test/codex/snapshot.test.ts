// Shell snapshots through the codex door, with a real login shell and a profile of its own.

import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { findBubblewrap } from '../../src/server/codex/sandbox/sandbox.ts';
import { serve } from '../support/coder-client.ts';
import { CodexClient } from '../support/codex-client.ts';
import { lookBelow } from '../support/files.ts';
import { onCleanup, temporaryFolder } from '../support/hosts.ts';

const BASH = '/bin/bash';
const boxes = (await findBubblewrap(process.env['BUBBLEWRAP'])()) !== undefined;
const policy = {
  inherit: 'all',
  ignoreDefaultExcludes: false,
  exclude: ['LEFT_OUT'],
  set: { SET_BY_POLICY: 'policy' },
  includeOnly: [],
};

interface Shell {
  /** How often the profile was read. */
  readonly reads: () => number;
  readonly client: CodexClient;
  readonly state: string;
  readonly folder: string;
  /** Runs a script of the login shell; answers its output and exit code. */
  readonly run: (script: string, more?: object) => Promise<readonly [string, number | undefined]>;
}

async function shell(profile: string): Promise<Shell> {
  const folder = temporaryFolder();
  const count = join(folder, 'count');
  mkdirSync(join(folder, 'home'));
  const counting = `echo read >> '${count}'; echo noise\n`;
  writeFileSync(join(folder, 'home/.bash_profile'), counting + profile);
  const state = join(folder, 'state');
  const env = { PATH: process.env['PATH'], HOME: join(folder, 'home') };
  const served = await serve({ env, home: state });
  onCleanup(() => served.stop());
  const url = `ws://127.0.0.1:${served.port}/codex?token=${served.token}`;
  const client = await CodexClient.ready(url);
  let last = 0;
  return {
    client,
    state,
    folder,
    reads: () => (existsSync(count) ? readFileSync(count, 'utf8').length / 'read\n'.length : 0),
    run: async (script, more = {}) => {
      const id = `p${(last += 1)}`;
      await client.start(id, [BASH, '-lc', script], {
        cwd: pathToFileURL(folder).href,
        env: { OVERLAY: 'overlay' },
        envPolicy: policy,
        ...snapshot('one'),
        ...more,
      });
      await client.untilClosed(id);
      const exited = client.of(id).find(({ method }) => method === 'process/exited');
      return [client.output(id), exited?.params.exitCode];
    },
  };
}

function snapshot(scopeId: string, name = 'bash', path = BASH): object {
  return { shellSnapshot: { scopeId, shell: { name, path } } };
}

const PROFILE = `
export FROM_PROFILE='two
lines' API_KEY=k-secret-k LEFT_OUT=1 OVERLAY=profile SET_BY_POLICY=profile
greet() { echo "hello $1"; }
alias shout='echo LOUD'
exported() { echo inner; }; export -f exported
`;

it('[CX909] functions, aliases and exports are there without reading the profile again', async () => {
  // 38
  const { run, reads, state } = await shell(PROFILE);
  const script = 'greet you; exported; bash -c exported; alias shout; echo "$FROM_PROFILE"; exit 7';
  const said = "hello you\ninner\ninner\nalias shout='echo LOUD'\ntwo\nlines\n";
  for (let time = 0; time < 3; time += 1) expect(await run(script)).toEqual([said, 7]);
  expect(reads()).toBe(1);
  // The name of the shell, its arguments, and no trace of how it was done.
  const traces = 'echo "$0 $#"; shopt expand_aliases; env | grep -c HOLDFAST_SHELL; true';
  expect(await run(traces)).toEqual([`${BASH} 0\nexpand_aliases \toff\n0\n`, 0]);
  const kept = lookBelow(state, (path) =>
    statSync(path).isFile() ? readFileSync(path, 'latin1') : '',
  );
  expect(kept.filter((content) => content !== '').length).toBeGreaterThan(3);
  for (const secret of ['k-secret-k', 'greet ()'])
    expect(kept.filter((content) => content.includes(secret))).toEqual([]);
});

it('[CX909] exports are filtered by the policy, and what the client sets wins', async () => {
  const { run } = await shell(PROFILE);
  const script = 'echo "[$API_KEY] [$LEFT_OUT] [$OVERLAY] [$SET_BY_POLICY] [${FROM_PROFILE%%$*}]"';
  expect(await run(script)).toEqual(['[] [] [overlay] [policy] [two\nlines]\n', 0]);
  const only = { envPolicy: { ...policy, includeOnly: ['PATH', 'HOME'] } };
  expect(await run(script, only)).toEqual(['[] [] [overlay] [policy] []\n', 0]);
});

it('[CX909] each scope, folder, policy and shell has its own', async () => {
  const { run, reads } = await shell(PROFILE);
  await run('true');
  await run('true', snapshot('two'));
  await run('true', { cwd: 'file:///' });
  await run('true', { envPolicy: { ...policy, exclude: [] } });
  expect(reads()).toBe(4);
  await run('true');
  await run('true', snapshot('two'));
  expect(reads()).toBe(4);
  // Sixteen are kept.
  for (let scope = 0; scope < 16; scope += 1) await run('true', snapshot(`s${scope}`));
  expect(reads()).toBe(20);
  await run('true', snapshot('s0'));
  expect(reads()).toBe(20);
  await run('true');
  expect(reads()).toBe(21);
});

it('[CX909] a profile that fails, or says too much, leaves the plain command, and is not asked again', async () => {
  const failing = await shell('[[ $- == *x* ]] || trap "exit 9" EXIT\nexport P=1\n');
  const plain = 'trap - EXIT; echo "P=$P"; shopt -q login_shell && echo login';
  for (let time = 0; time < 2; time += 1)
    expect(await failing.run(plain)).toEqual(['noise\nP=1\nlogin\n', 0]);
  expect(failing.reads()).toBe(3);
  const wordy = await shell(
    'head -c 600000 /dev/zero | tr "\\0" x >&2; head -c 600000 /dev/zero\n',
  );
  const [output, code] = await wordy.run('echo end');
  expect([output.slice(-4), code]).toEqual(['end\n', 0]);
  expect(wordy.reads()).toBe(2);
});

it('[CX909] large and strange definitions come through whole', async () => {
  // Without a fork for each: on a busy machine these would take longer than a profile may.
  const { run, reads } = await shell(`
    printf -v zeros %0180d 0
    for ((n = 1; n <= 1500; n += 1)); do eval "f$n() { echo 'ä€😀-\\"\\$x\\\\' $n-$zeros; }"; done
    alias odd="it's"`);
  const [output] = await run('f1; f750; f1500; alias odd; declare -F | wc -l');
  const zeros = '0'.repeat(180);
  const line = (n: number): string => `ä€😀-"$x\\ ${n}-${zeros}\n`;
  const odd = String.raw`alias odd='it'\''s'`;
  expect(output).toBe(`${line(1)}${line(750)}${line(1500)}${odd}\n1500\n`);
  expect(reads()).toBe(1);
});

it('[CX909] only a script of that login shell is changed, and what is asked wrongly is refused', async () => {
  const { run, reads, client } = await shell(PROFILE);
  expect(await run('', { argv: ['sh', '-c', 'echo other'] })).toEqual(['other\n', 0]);
  expect(reads()).toBe(0);
  expect(await run('greet x', snapshot('one', 'fish'))).toEqual(['noise\nhello x\n', 0]);
  const invalid = (message: string): object => ({ code: -32602, message });
  const start = { processId: 'x', argv: [BASH, '-lc', ':'], cwd: 'file:///', env: {}, tty: false };
  const refusal = (more: object): Promise<unknown> =>
    client.refusal('process/start', { ...start, ...more });
  const scope = 'shell snapshot scope must be non-empty and at most 256 bytes';
  expect(await refusal(snapshot(''))).toEqual(invalid(scope));
  expect(await refusal(snapshot('x'.repeat(257)))).toEqual(invalid(scope));
  expect(await refusal({ shellSnapshot: { scopeId: 's' } })).toEqual(
    invalid('missing field `shell`'),
  );
});

it.skipIf(!boxes)('[CX909] the profile of a sandboxed command is read in its sandbox', async () => {
  const { run, folder, reads } = await shell(
    'export P=1; (touch "$HOME/escaped") 2>/dev/null; (touch made) 2>/dev/null\n',
  );
  const special = (kind: string): object => ({ type: 'special', value: { kind } });
  const work = join(folder, 'work');
  mkdirSync(work);
  const cwd = pathToFileURL(work).href;
  const entries = [
    { path: special('root'), access: 'read' },
    { path: special('project_roots'), access: 'write' },
  ];
  const permissions = {
    type: 'managed',
    file_system: { type: 'restricted', entries },
    network: 'restricted',
  };
  const sandbox = { permissions, workspaceRoots: [cwd], windowsSandboxLevel: 'disabled' };
  expect(await run('echo "P=$P"', { cwd, sandbox })).toEqual(['P=1\n', 0]);
  expect(existsSync(join(work, 'made'))).toBe(true);
  expect(existsSync(join(folder, 'home/escaped'))).toBe(false);
  expect(reads()).toBe(0);
});
