// Expectations were compared with codex's own server on the same folders.

import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { caller, TestSession, type Answer } from '../../../../test/support/codex-session.ts';
import { temporaryFolder } from '../../../../test/support/hosts.ts';
import { capabilityMethods } from './capability-roots.ts';

const uri = (path: string): string => pathToFileURL(path).href;
const SKILL = '---\nname: demo\ndescription: d\n---\nbody';

/** A folder with these files in it. */
function tree(files: Readonly<Record<string, string | Buffer>>): string {
  const folder = temporaryFolder();
  for (const [name, contents] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), contents);
  }
  return folder;
}

type Asking = (params: unknown) => Promise<Answer>;

function asker(session = new TestSession()): Asking {
  const about = { env: {}, cwd: '/', userHome: '/', version: '0' };
  const ask = caller(capabilityMethods(about), session);
  return (params) => ask('capabilityRoots/discoverV1', params);
}

async function discovered(folder: string, more: object = {}, ask = asker()): Promise<Answer> {
  const { roots } = await ask({ roots: [{ id: 'r', path: uri(folder), ...more }] });
  return (roots as Answer[])[0] as Answer;
}

/** Where the found files are, below the folder. */
function pathsOf(folder: string, found: unknown): string[] {
  const text = JSON.stringify(found);
  return [...text.matchAll(/"path":"([^"]*)"/g)].map(([, path = '']) =>
    path.replace(`${uri(folder)}/`, ''),
  );
}

it('[CX901] a root has its plugin, the configurations it names, its skills and every manifest below it', async () => {
  const folder = tree({
    '.codex-plugin/plugin.json': '{"name":"p","mcpServers":"./conf/m.json"}',
    'conf/m.json': '{"m":1}',
    '.mcp.json': 'not asked for',
    '.app.json': '{"a":1}',
    'skills/demo/SKILL.md': SKILL,
    'skills/demo/agents/openai.yaml': 'interface: {}\n',
    'inner/.claude-plugin/plugin.json': '{"name":"inner"}',
  });
  const at = (name: string): string => uri(join(folder, name));
  const manifest = {
    path: at('.codex-plugin/plugin.json'),
    contents: '{"name":"p","mcpServers":"./conf/m.json"}',
  };
  expect(await discovered(folder)).toEqual({
    id: 'r',
    path: uri(folder),
    plugin: {
      manifest,
      mcpConfig: { path: at('conf/m.json'), contents: '{"m":1}' },
      appsConfig: { path: at('.app.json'), contents: '{"a":1}' },
    },
    skills: [
      {
        instructions: { path: at('skills/demo/SKILL.md'), contents: SKILL },
        metadata: {
          path: at('skills/demo/agents/openai.yaml'),
          contents: 'interface: {}\n',
        },
      },
    ],
    namespaceManifests: [
      manifest,
      { path: at('inner/.claude-plugin/plugin.json'), contents: '{"name":"inner"}' },
    ],
    warnings: [],
    error: null,
  });
});

it('[CX901] a path in a manifest stays inside its root; one that does not is warned of and the usual file taken', async () => {
  const usual = { '.mcp.json': '{"usual":1}' };
  const must = 'path must start with `./`';
  const below = 'path must remain below the capability root';
  for (const [said, warning] of [
    ['"../m.json"', must],
    ['"/etc/hostname"', must],
    ['""', must],
    ['"./../m.json"', below],
    ['"./"', below],
    ['5', undefined],
    ['null', undefined],
  ] as const) {
    const manifest = `{"mcpServers":${said}}`;
    const folder = tree({ '.codex-plugin/plugin.json': manifest, ...usual });
    const { plugin, warnings } = await discovered(folder);
    expect(plugin).toMatchObject({ mcpConfig: { contents: '{"usual":1}' } });
    const place = uri(join(folder, '.codex-plugin/plugin.json'));
    expect(warnings).toEqual(
      warning === undefined ? [] : [`ignoring mcpServers in ${place}: ${warning}`],
    );
  }
  // Servers in the manifest itself, or in a file that is not there: no other takes their place.
  for (const said of ['{"x":{}}', '"./none.json"']) {
    const folder = tree({ '.codex-plugin/plugin.json': `{"mcpServers":${said}}`, ...usual });
    expect(await discovered(folder)).toMatchObject({ plugin: { mcpConfig: null }, warnings: [] });
  }
});

it('[CX901] skills are looked for six folders deep, through links to folders but each folder once, sorted', async () => {
  const folder = tree({
    'SKILL.md': SKILL,
    '1/2/3/4/5/6/SKILL.md': SKILL,
    '1/2/3/4/5/6/7/SKILL.md': SKILL,
    '.hidden/SKILL.md': SKILL,
    'case/skill.md': SKILL,
    'demo/SKILL.md': SKILL,
  });
  symlinkSync('demo', join(folder, 'again'));
  symlinkSync(join(tree({ 'x/SKILL.md': SKILL }), 'x'), join(folder, 'linked'));
  mkdirSync(join(folder, 'file-link'));
  symlinkSync('../SKILL.md', join(folder, 'file-link/SKILL.md'));
  const { skills, warnings } = await discovered(folder);
  expect(pathsOf(folder, skills)).toEqual([
    '.hidden/SKILL.md',
    '1/2/3/4/5/6/SKILL.md',
    'SKILL.md',
    'again/SKILL.md',
    'linked/SKILL.md',
  ]);
  expect(warnings).toEqual([]);
});

it('[CX901] what is too long, no text or too much is left out and warned of', async () => {
  const folder = tree({
    'long/SKILL.md': 'x'.repeat(1024 * 1024 + 1),
    'fits/SKILL.md': 'x'.repeat(1024 * 1024),
    'binary/SKILL.md': Buffer.from([0xff, 0xfe]),
  });
  const { skills, warnings } = await discovered(folder);
  expect(pathsOf(folder, skills)).toEqual(['fits/SKILL.md']);
  expect(warnings).toEqual([
    `capability file ${uri(folder)}/binary/SKILL.md is not UTF-8: invalid utf-8 sequence`,
    `capability file ${uri(folder)}/long/SKILL.md exceeds the 1048576-byte limit`,
  ]);
  const many = tree({});
  for (let index = 0; index < 2001; index += 1) mkdirSync(join(many, String(index)));
  const limit = `capability scan reached its traversal limit (root: ${uri(many)})`;
  expect(await discovered(many)).toMatchObject({ warnings: [limit], error: null });
  // All roots together, too: an answer must be one that the client takes.
  const heavy = tree(
    Object.fromEntries(Array.from({ length: 6 }, (_, at) => [`${at}/SKILL.md`, 'y'.repeat(1e6)])),
  );
  const roots = [1, 2, 3].map((id) => ({ id: String(id), path: uri(heavy) }));
  const answer = (await asker()({ roots })) as { roots: { skills: []; warnings: string[] }[] };
  expect(answer.roots.map((root) => root.skills.length)).toEqual([6, 6, 4]);
  expect(answer.roots[2]?.warnings).toEqual([
    `capability scan reached its traversal limit (root: ${uri(heavy)})`,
  ]);
});

it('[CX901] a root that cannot be read says why, and the others are returned; a malformed request is refused', async () => {
  const folder = tree({ file: '' });
  const ask = asker();
  const roots = ['nope', 'file', ''].map((name) => ({ id: name, path: uri(join(folder, name)) }));
  const answer = (await ask({ roots: [...roots, { id: 'far', path: 'file://host/x' }] })) as {
    roots: { error: string | null }[];
  };
  expect(answer.roots.map(({ error }) => error)).toEqual([
    `failed to inspect capability root ${uri(join(folder, 'nope'))}: No such file or directory (os error 2)`,
    `capability root ${uri(join(folder, 'file'))} is not a directory`,
    null,
    "failed to inspect capability root file://host/x: 'file://host/x' is invalid on 'linux'",
  ]);
  const invalid = (message: string): object => ({ code: -32602, message });
  expect(await ask({})).toEqual(invalid('missing field `roots`'));
  expect(await ask({ roots: [{ id: 'x' }] })).toEqual(invalid('missing field `path`'));
  expect(await ask({ roots: [{ path: uri(folder) }] })).toEqual(invalid('missing field `id`'));
  expect(await ask({ roots: [{ id: 'x', path: '/tmp' }] })).toEqual(
    invalid('invalid URI: relative URL without a base'),
  );
  expect(await ask({ roots: [] })).toEqual({ roots: [] });
  const most = Array.from({ length: 129 }, (_, id) => ({ id: String(id), path: uri(folder) }));
  expect(await ask({ roots: most })).toEqual({
    code: -32600,
    message: 'capability root discovery accepts at most 128 roots',
  });
});

it('[CX901] a root is looked at as its sandbox and its token allow', async () => {
  const folder = tree({ 'in/SKILL.md': SKILL, 'out/SKILL.md': SKILL });
  symlinkSync('../out', join(folder, 'in/way-out'));
  const entries = [{ path: { type: 'path', path: uri(join(folder, 'in')) }, access: 'read' }];
  const sandbox = {
    permissions: {
      type: 'managed',
      file_system: { type: 'restricted', entries },
      network: 'restricted',
    },
    windowsSandboxLevel: 'disabled',
  };
  const inside = await discovered(join(folder, 'in'), { sandbox });
  expect(pathsOf(join(folder, 'in'), inside['skills'])).toEqual(['SKILL.md']);
  expect(await discovered(join(folder, 'out'), { sandbox })).toMatchObject({
    skills: [],
    error: `failed to inspect capability root ${uri(join(folder, 'out'))}: No such file or directory (os error 2)`,
  });
  const scoped = asker(new TestSession(join(folder, 'out')));
  expect(await discovered(join(folder, 'out'), {}, scoped)).toMatchObject({
    skills: [],
    error: `failed to inspect capability root ${uri(join(folder, 'out'))}: Permission denied (os error 13)`,
  });
  const around = await discovered(folder, {}, scoped);
  expect(pathsOf(folder, around['skills'])).toEqual(['in/SKILL.md']);
});
