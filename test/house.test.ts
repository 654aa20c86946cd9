// The house's own rules, checked by machine: which floor may look at which, and that what is written about the code is
// still true of it.
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { errors } from '../src/protocol/errors.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** What each floor may import, besides itself. What lies above the floors, as src/index.ts does, may import all. */
const floors: Readonly<Record<string, readonly string[]>> = {
  base: [],
  protocol: ['base'],
  system: ['base', 'protocol'],
  journal: ['base', 'protocol', 'system'],
  host: ['base', 'protocol', 'system', 'journal'],
  keeper: ['base', 'protocol', 'system', 'journal', 'host'],
  fleet: ['base', 'protocol', 'system', 'journal', 'host', 'keeper'],
  screen: ['base', 'protocol', 'journal'],
  client: ['base', 'protocol', 'system'],
  terminals: ['base', 'protocol', 'journal', 'screen', 'client'],
  tools: ['base', 'protocol', 'client'],
  adapters: ['base', 'protocol', 'client', 'tools'],
  server: [
    'base',
    'protocol',
    'system',
    'journal',
    'host',
    'keeper',
    'screen',
    'terminals',
    'client',
    'tools',
  ],
  /** The page in the browser: only files that need nothing of Node; the build fails on others. */
  dashboard: ['base', 'protocol', 'screen'],
  cli: [
    'base',
    'protocol',
    'system',
    'journal',
    'host',
    'keeper',
    'screen',
    'terminals',
    'server',
    'client',
    'tools',
    'fleet',
  ],
};

const ABOVE = 'above';
const MAX_FILE_LINES = 300;
/** With its comments. */
const MAX_WHOLE_FILE_LINES = 390;
const CLONE_LINES = 8;
const MAX_FOLDER_FILES = 16;
/** Their files on disk, or the protocol they speak, have a field "sum". */
const STORED_SUMS = [
  'src/server/http/tokens.ts',
  'src/server/dashboard/page-sessions.ts',
  'src/server/telemetry/otlp-data.ts',
];
/** Lines of comments; every line stays a line. */
const COMMENTS = /^[ \t]*(?:\/\/|\/?\*).*$/gm;
const NOT_OURS = new Set(['node_modules', 'dist', 'coverage', '.git']);

/** Every file of the repository, as a path from its root. */
function filesUnder(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (NOT_OURS.has(entry.name)) return [];
    if (entry.isDirectory()) return filesUnder(path);
    return entry.isFile() ? [path] : [];
  });
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

const everything = filesUnder('.');
const isTest = (path: string): boolean => path.endsWith('.test.ts');
const sources = everything.filter((path) => path.startsWith('src/') && /\.tsx?$/.test(path));
const code = sources.filter((path) => !isTest(path));
const tests = everything.filter(isTest);

function floorOf(path: string): string | undefined {
  const [top, floor, ...rest] = path.split('/');
  return top === 'src' && rest.length > 0 ? floor : undefined;
}

/** The relative imports of a file, static and dynamic, as paths from the root. */
function importsOf(path: string): string[] {
  const found = read(path).matchAll(/(?:\bfrom|\bimport)\s*\(?\s*'(\.[^']*)'/g);
  return Array.from(found, ([, target = '']) =>
    relative(root, resolve(root, dirname(path), target)),
  );
}

/** "path:line: text" of every line that matches. */
function linesWith(pattern: RegExp, paths: readonly string[]): string[] {
  return paths.flatMap((path) =>
    read(path)
      .split('\n')
      .flatMap((line, at) => (pattern.test(line) ? [`${path}:${at + 1}: ${line.trim()}`] : [])),
  );
}

describe('the house', () => {
  it('[A1] imports point down only', () => {
    const wrong = code.flatMap((path) => {
      const floor = floorOf(path);
      const allowed =
        floor === undefined ? [ABOVE, ...Object.keys(floors)] : [floor, ...(floors[floor] ?? [])];
      return importsOf(path)
        .filter((target) => !allowed.includes(floorOf(target) ?? ABOVE))
        .map((target) => `${path} imports ${target}`);
    });
    expect(wrong).toEqual([]);
  });

  it('[A1] every floor is known, and every import names a file that is there', () => {
    const names = new Set(code.map(floorOf).filter((floor) => floor !== undefined));
    expect([...names].filter((floor) => floors[floor] === undefined)).toEqual([]);
    const there = new Set(everything);
    const missing = [...sources, ...tests].flatMap((path) =>
      importsOf(path)
        .filter((target) => !there.has(target) && !target.startsWith('dist/'))
        .map((target) => `${path} imports ${target}`),
    );
    expect(missing).toEqual([]);
  });

  it("[A2] only the command line, the server, the keeper's main and the two ways into the SDK look at the environment", () => {
    const may = (path: string): boolean =>
      floorOf(path) === 'cli' ||
      floorOf(path) === 'server' ||
      ['src/keeper/main.ts', 'src/embed.ts', 'src/client/connect.ts'].includes(path);
    const looks = code.filter((path) =>
      /process\.env\b|\benv\b[^=;]*\}\s*=\s*process\b/.test(read(path)),
    );
    expect(looks.filter((path) => !may(path))).toEqual([]);
  });

  it('[A3] every rule is named by a test, and every test names a rule', () => {
    const rules = Array.from(
      read('docs/rules.md').matchAll(/^- \*\*([A-Z]+\d+)\*\* \S/gm),
      ([, id = '']) => id,
    );
    expect(rules.filter((id, index) => rules.indexOf(id) !== index)).toEqual([]);
    const cited = new Map<string, string>();
    for (const path of tests) {
      for (const [, names = ''] of read(path).matchAll(/['"`]((?:\[[A-Z]+\d+\] ?)+)/g)) {
        for (const [, id = ''] of names.matchAll(/\[([A-Z]+\d+)\]/g)) cited.set(id, path);
      }
    }
    expect(rules.filter((id) => !cited.has(id))).toEqual([]);
    expect(
      [...cited].filter(([id]) => !rules.includes(id)).map(([id, path]) => `${path} cites ${id}`),
    ).toEqual([]);
  });

  it('[A3] the name of every test begins with a rule', () => {
    const nameless = tests.flatMap((path) =>
      Array.from(
        read(path).matchAll(/^\s*(?:it|test)\(\s*(['"`])(?!\[[A-Z]+\d+\]).*/gm),
        ([line]) => `${path}: ${line.trim()}`,
      ),
    );
    expect(nameless).toEqual([]);
  });

  it('[A4] docs/errors.md repeats the error table', async () => {
    const rows = Object.entries(errors).map(([name, { http, rpc, exit, retryable, remedy }]) => {
      return `| \`${name}\` | ${http} | ${rpc} | ${exit} | ${retryable ? 'yes' : 'no'} | ${remedy} |`;
    });
    // `vitest -u` writes it anew.
    const page = read('docs/errors.md').replace(/(?:^\| `.*\n)+/m, () => `${rows.join('\n')}\n`);
    await expect(page).toMatchFileSnapshot(join(root, 'docs/errors.md'));
  });

  it('[A5] no source file is longer than 300 lines of code, and each begins by saying what it is', () => {
    const lengths = code.map((path) => {
      const text = read(path);
      return { path, whole: text.split('\n').length - 1, lines: codeLines(text) };
    });
    expect(
      lengths.filter(({ whole, lines }) => lines > MAX_FILE_LINES || whole > MAX_WHOLE_FILE_LINES),
    ).toEqual([]);
    const silent = code.filter((path) => !/^(?:#!.*\n)?\/\/ \S/.test(read(path)));
    expect(silent).toEqual([]);
  });

  it('[K50] what the server loads late is loaded in two places, which stay loaded when the files have gone', () => {
    const places = ['src/server/lazy-modules.ts', 'src/terminals/lazy-screens.ts'];
    const late = code.filter((path) => /^src\/(?:server|terminals)\//.test(path));
    const others = late.filter((path) => !places.includes(path));
    expect(others).toHaveLength(late.length - places.length);
    expect(others.filter((path) => /(?<!typeof )\bimport\(/.test(read(path)))).toEqual([]);
  });

  it('[A9] no folder has more than 16 source files, one file per command aside', () => {
    const counts = new Map<string, number>();
    for (const path of code) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
    const crowded = [...counts].filter(
      ([folder, count]) => count > MAX_FOLDER_FILES && basename(folder) !== 'commands',
    );
    expect(crowded).toEqual([]);
  });

  it('[A11] no eight lines of code stand in two places', () => {
    const first = new Map<string, string>();
    const again = code.flatMap((path) => {
      const lines = linesOfCode(path);
      return lines.slice(CLONE_LINES - 1).flatMap((_, at) => {
        const text = lines.slice(at, at + CLONE_LINES).map((line) => line.text);
        const [place, key] = [`${path}:${lines[at]?.number}`, text.join('\n')];
        const known = first.get(key);
        if (known === undefined) first.set(key, place);
        return known === undefined ? [] : [`${place} repeats ${known}`];
      });
    });
    expect(again).toEqual([]);
  });

  it('[A12] what a source file exports is used by another one, or is what users import', () => {
    const words = new Map<string, number>();
    const texts = code.map((path) => ({ path, text: read(path).replaceAll(COMMENTS, '') }));
    for (const { text } of texts)
      for (const [word] of text.matchAll(/\b[A-Za-z]\w*/g))
        words.set(word, (words.get(word) ?? 0) + 1);
    const exported = /^export (?:async )?(?:function\*?|const|class|interface|type) (\w+)/gm;
    const unused = texts
      .filter(({ path }) => floorOf(path) !== 'adapters')
      .flatMap(({ path, text }) =>
        Array.from(text.matchAll(exported), ([, name = '']) => name)
          .filter((name) => words.get(name) === 1)
          .map((name) => `${path} exports ${name}`),
      );
    expect(unused).toEqual([]);
  });

  it('[A10] sources and documents use the words of the field, not the private ones of earlier versions', () => {
    const gone =
      /\b(?:kin|household|untold|asides|untidy|knock|strangers?|lighten|putAway|GrownProcess|NearReader)\b/i;
    const documents = everything.filter((path) => /^(?:docs\/(?!adr\/)|[A-Z]).*\.md$/.test(path));
    const texts = [...code, ...documents].filter((path) => path !== 'CHANGELOG.md');
    expect(linesWith(gone, texts)).toEqual([]);
  });

  it('[A10] sources, their tests included, name the subject of a sentence and use no metaphors', () => {
    const vague =
      /\b(?:told|whoever|somebody|anybody|everybody|so many|(?<!<\/?)aside|tid(?:y|ied)|attend(?:ed|s)?|visit(?:s|ed|or)?|rooms?|grown|sums?)\b/i;
    expect(
      linesWith(
        vague,
        sources.filter((path) => !STORED_SUMS.includes(path)),
      ),
    ).toEqual([]);
  });

  it('[A6] no file names a registry, or a place on the machine it was written on', () => {
    const hosts = 'npmjs|yarnpkg|npmmirror|verdaccio|artifactory';
    const places = 'work|root|tmp/exp';
    const patterns = [
      new RegExp(`\\b(?:${hosts})\\.(?:org|com)\\b`),
      new RegExp(`(?<![\\w.~-])/(?:${places})(?:/|\\b(?!\\w))`),
    ];
    const found = everything.filter((path) => patterns.some((pattern) => pattern.test(read(path))));
    expect(found).toEqual([]);
    expect(read('package-lock.json')).not.toContain('"resolved"');
  });

  it('[A7] installing runs no script of ours and brings the packages that are argued for', () => {
    const { scripts, dependencies } = JSON.parse(read('package.json')) as Record<
      string,
      Record<string, string>
    >;
    const hooks = Object.keys(scripts ?? {}).filter((name) =>
      /^(?:pre|post)?install$|^(?:pre)?prepare$/.test(name),
    );
    expect(hooks).toEqual([]);
    expect(Object.keys(dependencies ?? {})).toEqual([
      '@modelcontextprotocol/server',
      '@nats-io/jetstream',
      '@nats-io/transport-node',
      '@valibot/to-json-schema',
      '@xterm/headless',
      'aws4fetch',
      'fontkitten',
      'koffi',
      'smol-toml',
      'valibot',
      'ws',
      'yaml',
    ]);
    const argued = read('docs/adr/0004-dependencies.md');
    expect(Object.keys(dependencies ?? {}).filter((name) => !argued.includes(name))).toEqual([]);
  });

  it('[A8] every document that is linked to is there', () => {
    const there = new Set(everything);
    const broken = everything
      .filter((path) => path.endsWith('.md'))
      .flatMap((path) =>
        Array.from(
          read(path).matchAll(/\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)/g),
          ([, target = '']) => join(dirname(path), target),
        )
          .filter(
            (target) =>
              !there.has(target) &&
              !everything.some((each) => each.startsWith(`${target.replace(/\/$/, '')}/`)),
          )
          .map((target) => `${path} links to ${target}`),
      );
    expect(broken).toEqual([]);
  });

  it('[A13] ARCHITECTURE.md stays one page: five paths of at most 12 steps, at most 20 places for a change', () => {
    const page = read('ARCHITECTURE.md');
    const section = (title: string): string =>
      page.slice(page.indexOf(`\n## ${title}`)).split('\n## ')[1] ?? '';
    const steps = section('Five paths of data')
      .split(/^\*\*/m)
      .slice(1)
      .map((path) => path.match(/^\d+\. /gm)?.length ?? 0);
    expect(steps).toHaveLength(5);
    expect(steps.filter((count) => count < 1 || count > 12)).toEqual([]);
    const rows = section('Where do I change').match(/^\| (?!…|-)/gm) ?? [];
    expect(rows.length).toBeGreaterThan(0);
    expect(rows.length).toBeLessThanOrEqual(20);
    const paths = Array.from(
      page.matchAll(/`((?:[a-z0-9-]+\/)+[a-z0-9-]+\.ts)`/g),
      ([, path]) => path,
    );
    const there = new Set(everything);
    expect(paths.filter((path) => !there.has(`src/${path}`) && !there.has(path ?? ''))).toEqual([]);
  });

  it('[A8] every command is described in docs/command-line.md, and every decision in the list of decisions', () => {
    const commands = code
      .filter((path) => dirname(path) === 'src/cli/commands')
      .map((path) => basename(path, '.ts'));
    const page = read('docs/command-line.md');
    expect(commands.filter((name) => !page.includes(`\`holdfast ${name}\``))).toEqual([]);
    const list = read('docs/adr/README.md');
    const decisions = everything
      .filter((path) => /^docs\/adr\/\d/.test(path))
      .map((path) => basename(path));
    expect(decisions.filter((name) => !list.includes(`(${name})`))).toEqual([]);
  });
});

function codeLines(text: string): number {
  return text.split('\n').filter((line) => !/^\s*(?:$|\/\/|\/\*|\*)/.test(line)).length;
}

/** Lines with words in them, without imports and comments. */
function linesOfCode(path: string): { readonly text: string; readonly number: number }[] {
  const blank = (part: string): string => part.replaceAll(/[^\n]/g, '');
  return read(path)
    .replaceAll(COMMENTS, '')
    .replaceAll(/^import\b[^;]*;$/gm, blank)
    .split('\n')
    .map((line, at) => ({ text: line.trim(), number: at + 1 }))
    .filter(({ text }) => /\w/.test(text));
}
