// The plugin folder installed in the real agents, offline: `npm run test:plugins`. Ends with 1 if anything failed.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { codexCli } from './codex-cli.mjs';
import { installedPeer } from './peer.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const CLAUDE_VERSION = '2.1.327';
const place = mkdtempSync(join(tmpdir(), 'holdfast-plugins-'));
const [home, bin] = [join(place, 'home'), join(place, 'bin')];
for (const folder of [home, bin]) mkdirSync(folder);
cpSync(join(root, 'plugins'), join(place, 'plugins'), { recursive: true });
// The package as npx would have it.
const main = join(root, 'dist', 'cli', 'main.js');
const npx = `#!/bin/sh\nshift 2\nexec '${process.execPath}' '${main}' "$@"\n`;
writeFileSync(join(bin, 'npx'), npx);
chmodSync(join(bin, 'npx'), 0o755);
const env = {
  PATH: `${bin}:${process.env.PATH}`,
  HOME: home,
  CODEX_HOME: join(home, '.codex'),
  HOLDFAST_HOME: join(place, 'state'),
  // Nothing of this goes out.
  HTTPS_PROXY: 'http://127.0.0.1:9',
  HTTP_PROXY: 'http://127.0.0.1:9',
};
mkdirSync(env.CODEX_HOME);
let failed = 0;

try {
  const peer = { name: '@anthropic-ai/claude-code', version: CLAUDE_VERSION, bin: 'claude' };
  const wrapper = installedPeer(peer);
  // Its program lies in a package of its own; only an install script would put it in the place of the wrapper.
  const native = `../@anthropic-ai/claude-code-${process.platform}-${process.arch}/claude`;
  const claude = wrapper && join(dirname(wrapper), native);
  if (claude === undefined) note('claude: could not be installed', false, '');
  else {
    check(
      'claude: validates',
      [claude, 'plugin', 'validate', join(place, 'plugins/holdfast')],
      /pass/i,
    );
    check(
      'claude: knows the marketplace',
      [claude, 'plugin', 'marketplace', 'add', join(place, 'plugins')],
      /holdfast/,
    );
    check('claude: installs', [claude, 'plugin', 'install', 'holdfast@holdfast'], /holdfast/);
    check('claude: the server connects', [claude, 'mcp', 'list'], /holdfast.*Connected/);
  }
  const codex = codexCli();
  check(
    'codex: knows the marketplace',
    [codex, 'plugin', 'marketplace', 'add', join(place, 'plugins')],
    /holdfast/,
  );
  check('codex: installs', [codex, 'plugin', 'add', 'holdfast@holdfast'], /holdfast/);
  check('codex: lists the server', [codex, 'mcp', 'list'], /holdfast/);
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const skill = join(
    env.CODEX_HOME,
    'plugins/cache/holdfast/holdfast',
    version,
    'skills/holdfast/SKILL.md',
  );
  note('codex: has the skill', readFileSync(skill, 'utf8').includes('name: holdfast'), skill);
  if (claude !== undefined) {
    // Its tools are called by scripted models.
    const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
    const { status } = spawnSync(process.execPath, [vitest, 'run', 'test/cli/real-plugins'], {
      cwd: root,
      stdio: 'inherit',
      env: { ...process.env, CLAUDE_CLI: claude, CODEX_CLI: codex },
    });
    note('both: models call a tool', status === 0, '');
  }
} finally {
  spawnSync(process.execPath, [main, 'shutdown'], { env });
  rmSync(place, { recursive: true, force: true });
}
process.exit(failed > 0 ? 1 : 0);

function check(what, [program, ...words], wanted) {
  const done = spawnSync(program, words, { env, cwd: home, encoding: 'utf8', timeout: 120_000 });
  const text = `${done.stdout}${done.stderr}`;
  note(what, done.status === 0 && wanted.test(text), text.trim().split('\n').at(-1));
}

function note(what, ok, detail) {
  if (!ok) failed += 1;
  process.stdout.write(`${ok ? 'pass' : 'FAIL'}  ${what}  ${detail}\n`);
}
