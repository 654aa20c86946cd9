// Expectations were compared with the server of codex 0.169.0 on the same folders.

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { caller, TestSession, type Answer } from '../../../../test/support/codex-session.ts';
import { temporaryFolder } from '../../../../test/support/hosts.ts';
import { installedMethods } from './installed-capabilities.ts';

const CACHE = 'codex/plugins/cache';
const CWD = 'file:///nowhere/at/all';
const INCOMPLETE = 'some capability metadata could not be loaded; discovery may be incomplete';
const UNRESOLVED = 'some capability locations could not be resolved; discovery may be incomplete';

type Files = Readonly<Record<string, string | Buffer>>;

/** A user's home with these files; `codex` in it is the codex home. */
class UserHome {
  readonly folder = temporaryFolder();

  constructor(files: Files) {
    for (const [name, contents] of Object.entries(files)) {
      mkdirSync(dirname(join(this.folder, name)), { recursive: true });
      writeFileSync(join(this.folder, name), contents);
    }
  }

  ask(params: unknown = { cwd: CWD }, session = new TestSession()): Promise<Answer> {
    const env = { CODEX_HOME: join(this.folder, 'codex') };
    const about = { env, cwd: '/', userHome: this.folder, version: '0' };
    return caller(installedMethods(about), session)('capabilities/discoverV2', params);
  }

  uri(name: string): string {
    return pathToFileURL(join(this.folder, name)).href;
  }
}

function skill(name: string, more = ''): string {
  return `---\nname: ${name}\ndescription: about ${name}\n${more}---\nbody\n`;
}

/** An installed plugin: its manifest, and its other files. */
function plugin(place: string, manifest: string, files: Files = {}): Files {
  const root = `${CACHE}/${place}`;
  const others = Object.entries(files).map(([name, contents]) => [`${root}/${name}`, contents]);
  return {
    [`${root}/.codex-plugin/plugin.json`]: manifest,
    ...(Object.fromEntries(others) as Files),
  };
}

it('[CX911] an installed plugin is described with its newest version, files, remote id and skills, enabled or not', async () => {
  const manifest = '{"name":"tool","interface":{"displayName":"The Tool"}}';
  const home = new UserHome({
    ...plugin('market/folder/1.9.0', '{"name":"old"}'),
    ...plugin('market/folder/1.10.0', manifest, {
      '.mcp.json': '{"mcpServers":{}}',
      '.app.json': '{"apps":{}}',
      'skills/one/SKILL.md': skill('one'),
    }),
    [`${CACHE}/market/folder/.codex-remote-plugin-install.json`]:
      '{"schema_version":1,"remote_plugin_id":"rp_1"}',
    'codex/config.toml': '[plugins."folder@market"]\nenabled = false\n',
  });
  const root = home.uri(`${CACHE}/market/folder/1.10.0`);
  expect(await home.ask()).toEqual({
    plugins: [
      {
        id: 'folder@market',
        displayName: 'The Tool',
        remotePluginId: 'rp_1',
        version: '1.10.0',
        root,
        files: {
          manifest: { path: `${root}/.codex-plugin/plugin.json`, contents: manifest },
          mcpConfig: { path: `${root}/.mcp.json`, contents: '{"mcpServers":{}}' },
          appsConfig: { path: `${root}/.app.json`, contents: '{"apps":{}}' },
        },
        skills: [
          {
            name: 'tool:one',
            description: 'about one',
            shortDescription: null,
            path: `${root}/skills/one/SKILL.md`,
            dependencies: null,
            policy: null,
          },
        ],
      },
    ],
    skills: [],
    warnings: [],
  });
});

it('[CX911] of the versions of a plugin "local" comes first, then semantic versioning decides, then the text', async () => {
  for (const [versions, newest] of [
    [['2.0.0', 'local', 'zzz'], 'local'],
    [['1.0.0-beta.2', '1.0.0-beta.11'], '1.0.0-beta.11'],
    [['1.0.0', '1.0.0-rc.1'], '1.0.0'],
    [['1.0.0-1', '1.0.0-a'], '1.0.0-a'],
    [['1.0.0-a', '1.0.0-a.1'], '1.0.0-a.1'],
    [['1.0.0', 'abc'], 'abc'],
    [['1.0.0', '0abc'], '1.0.0'],
    [['abc123'], 'abc123'],
    [['1.0.0', '9 9'], '1.0.0'],
  ] as const) {
    const home = new UserHome(
      Object.assign({}, ...versions.map((version) => plugin(`m/p/${version}`, '{"name":"p"}'))),
    );
    const { plugins } = await home.ask();
    expect(plugins).toMatchObject([{ id: 'p@m', version: newest }]);
  }
});

it('[CX911] a manifest of another vendor counts, one that cannot be read leaves its plugin out with a warning', async () => {
  const home = new UserHome({
    [`${CACHE}/m/claude/1.0.0/.claude-plugin/plugin.json`]: '{"name":"c"}',
    [`${CACHE}/m/cursor/1.0.0/.cursor-plugin/plugin.json`]: '{}',
    [`${CACHE}/m/none/1.0.0/readme`]: 'no manifest',
    ...plugin('m/broken/1.0.0', '{"name":'),
    ...plugin('m/typed/1.0.0', '{"name":5}'),
    ...plugin('m/inline/1.0.0', '{"name":"i","mcpServers":{"x":{}}}'),
    ...plugin('m/missing/1.0.0', '{"name":"m","mcpServers":"./none.json"}'),
    ...plugin('m/named/1.0.0', '{"name":"n","mcpServers":"./conf.json"}', { 'conf.json': '{}' }),
    ...plugin('.hidden/p/1.0.0', '{}'),
    ...plugin('m/white space/1.0.0', '{}'),
    [`${CACHE}/m/named/.codex-remote-plugin-install.json`]: '{"schema_version":2}',
  });
  const { plugins, warnings } = await home.ask();
  const shown = (plugins as { files: { mcpConfig: object | null } }[]).map((each) => ({
    ...each,
    files: each.files.mcpConfig,
  }));
  const at = (name: string): string => home.uri(`${CACHE}/m/${name}`);
  const inline = { path: at('inline/1.0.0/.codex-plugin/plugin.json'), contents: '{"x":{}}' };
  expect(shown).toMatchObject([
    { id: 'claude@m', displayName: 'c', files: null },
    { id: 'cursor@m', displayName: '1.0.0', files: null },
    { id: 'inline@m', displayName: 'i', files: inline },
    { id: 'missing@m', displayName: 'm', files: null },
    { id: 'named@m', displayName: 'n', files: { path: at('named/1.0.0/conf.json') } },
  ]);
  // One for each place of which something is left out: broken, missing, none and typed.
  expect(warnings).toEqual([UNRESOLVED, INCOMPLETE, INCOMPLETE, INCOMPLETE, INCOMPLETE]);
});

it('[CX911] skills come from the codex home and from ~/.agents, with what they say of themselves', async () => {
  const settings = [
    'interface: {display_name: X}',
    'dependencies:',
    '  tools:',
    '  - {type: mcp, value: github, url: "http://x", oauth: {callback_port: 9}}',
    '  - {value: no type}',
    'policy:',
    '  allow_implicit_invocation: false',
  ].join('\n');
  const home = new UserHome({
    'codex/skills/a/SKILL.md': skill('a', 'metadata:\n  short-description: in short\n'),
    'codex/skills/a/agents/openai.yaml': settings,
    'codex/skills/.system/b/SKILL.md': skill('b'),
    'codex/skills/pack/.codex-plugin/plugin.json': '{"name":"pack"}',
    'codex/skills/pack/skills/c/SKILL.md': skill('c'),
    '.agents/skills/d/SKILL.md': '---\r\ndescription: >\r\n  folded\r\n  text\r\n---\r\n',
    '.codex/skills/other/SKILL.md': skill('not looked at'),
  });
  const own = { id: 'codex-home-skills', path: home.uri('codex/skills') };
  const plain = { shortDescription: null, dependencies: null, policy: null };
  const tool = {
    type: 'mcp',
    value: 'github',
    description: null,
    transport: null,
    command: null,
    url: 'http://x',
    oauthCallbackPort: 9,
  };
  expect(await home.ask()).toEqual({
    plugins: [],
    skills: [
      {
        ...plain,
        name: 'b',
        description: 'about b',
        path: home.uri('codex/skills/.system/b/SKILL.md'),
        discoveryRoot: own,
      },
      {
        name: 'a',
        description: 'about a',
        shortDescription: 'in short',
        path: home.uri('codex/skills/a/SKILL.md'),
        discoveryRoot: own,
        dependencies: { tools: [tool] },
        policy: { allowImplicitInvocation: false, products: [] },
      },
      {
        ...plain,
        name: 'pack:c',
        description: 'about c',
        path: home.uri('codex/skills/pack/skills/c/SKILL.md'),
        discoveryRoot: own,
      },
      {
        ...plain,
        name: 'd',
        description: 'folded text',
        path: home.uri('.agents/skills/d/SKILL.md'),
        discoveryRoot: { id: 'user-agent-skills', path: home.uri('.agents/skills') },
      },
    ],
    warnings: [],
  });
});

it('[CX911] front matter is read as people write it; what is no front matter leaves the skill out with one warning', async () => {
  const named = async (text: string | Buffer): Promise<unknown> => {
    const { skills, warnings } = await new UserHome({ 'codex/skills/dir/SKILL.md': text }).ask();
    const [found] = skills as { name: string; description: string }[];
    expect(warnings).toEqual(found ? [] : [INCOMPLETE]);
    return found && [found.name, found.description];
  };
  for (const [text, expected] of [
    ['name: n\ndescription: use when: this', ['n', 'use when: this']],
    ['name: n\ndescription: @x # said', ['n', '@x']],
    ['name: 1.50\ndescription: true', ['1.50', 'true']],
    ['name: ~\ndescription: "a\\n  b"', ['dir', 'a b']],
    ['description: d\nlicense: [MIT]', ['dir', 'd']],
    [`name: ${'n'.repeat(65)}\ndescription: d`, undefined],
    ['name: n', undefined],
    ['name: n\nname: m\ndescription: d', undefined],
    ['name: n\ndescription: d\nmetadata: [a]', undefined],
    ['- a list', undefined],
    [`name: n\ndescription: ${'['.repeat(10_000)}`, undefined],
    [`name: n\ndescription: ${'- '.repeat(5000)}`, undefined],
    [`description: ${'&a '.repeat(20)}d`, undefined],
    ['x: &x [1,2]\ndescription: *y', undefined],
    [`name: n\ndescription: ${'d'.repeat(17_000)}`, undefined],
    // A pattern that began at each of these lines anew would take an hour.
    [`name: n\ndescription: d${'\n'.repeat(1_000_000)}`, undefined],
  ] as const)
    expect([text.slice(0, 40), await named(`---\n${text}\n---\n`)]).toEqual([
      text.slice(0, 40),
      expected,
    ]);
  for (const text of ['no front matter', '---\nname: n\ndescription: d\n', Buffer.of(0xff, 0xfe)])
    expect(await named(text)).toBeUndefined();
});

it('[CX911] settings of a skill that are not as described set nothing', async () => {
  for (const yaml of [
    ': : [',
    'policy: 5',
    'policy: {allow_implicit_invocation: maybe}\ndependencies: {tools: [{type: a, value: b}]}',
    'policy: {products: [unknown]}',
    'dependencies: [a]\npolicy: {}',
    'dependencies: {tools: [{type: a, value: b, oauth: {callback_port: 99999}}]}',
    'dependencies: {tools: [{type: a}]}',
  ]) {
    const home = new UserHome({
      'codex/skills/a/SKILL.md': skill('a'),
      'codex/skills/a/agents/openai.yaml': yaml,
    });
    const { skills, warnings } = await home.ask();
    expect(skills).toMatchObject([{ name: 'a', dependencies: null, policy: null }]);
    expect(warnings).toEqual([]);
  }
});

it('[CX911] parameters are checked with the words of codex', async () => {
  const home = new UserHome({});
  for (const [params, message] of [
    [{}, 'missing field `cwd`'],
    [{ cwd: 'relative' }, 'invalid URI: relative URL without a base'],
    [{ cwd: 5 }, 'invalid type: number, expected a string'],
    [{ cwd: CWD, sandbox: {} }, 'missing field `permissions`'],
    [{ cwd: 'http://x/' }, 'unsupported path URI scheme `http`'],
  ] as const)
    expect(await home.ask(params)).toEqual({ code: -32602, message });
  expect(await home.ask({ cwd: CWD, other: 1 })).toEqual({ plugins: [], skills: [], warnings: [] });
});

it('[CX911] a scoped token and a sandbox hide what they hide elsewhere', async () => {
  const home = new UserHome({
    ...plugin('m/p/1.0.0', '{"name":"p"}'),
    'codex/skills/a/SKILL.md': skill('a'),
    '.agents/skills/b/SKILL.md': skill('b'),
  });
  const scoped = new TestSession(join(home.folder, 'codex'));
  expect(await home.ask({ cwd: CWD }, scoped)).toMatchObject({
    plugins: [],
    skills: [{ name: 'b' }],
    warnings: [UNRESOLVED, UNRESOLVED],
  });
  const entries = [{ path: { type: 'path', path: home.uri('codex/skills') }, access: 'read' }];
  const permissions = {
    type: 'managed',
    file_system: { type: 'restricted', entries },
    network: 'restricted',
  };
  const sandbox = { permissions, windowsSandboxLevel: 'disabled' };
  expect(await home.ask({ cwd: CWD, sandbox })).toMatchObject({
    plugins: [],
    skills: [{ name: 'a' }],
  });
});
