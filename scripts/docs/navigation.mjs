// Which pages there are, and the order in which the side bar lists them. Every Markdown file of docs/ is a page; one that is not
// named here stands at the end of the group of its folder, or under "More".
import { readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** A folder at the end stands for its pages that are not named. */
const GROUPS = [
  ['Start', ['index.md', 'tutorial.md', 'concepts.md', 'examples.md', 'comparison.md', 'faq.md']],
  [
    'Tasks',
    [
      'tasks/dev-server.md',
      'tasks/test-run.md',
      'tasks/ci.md',
      'tasks/repl.md',
      'tasks/ssh.md',
      'tasks/',
    ],
  ],
  [
    'Agents',
    ['agents/claude-code.md', 'agents/codex.md', 'agents/cursor.md', 'mcp.md', 'e2b.md', 'agents/'],
  ],
  [
    'Operations',
    ['dashboard.md', 'operations/troubleshooting.md', 'operations/', 'containment.md', 'fleet.md'],
  ],
  [
    'Reference',
    [
      'command-line.md',
      'reference/commands.md',
      'sdk.md',
      'reference/sdk.md',
      'reference/http.md',
      'reference/tools.md',
      'errors.md',
      'reference/limits.md',
      'reference/',
    ],
  ],
  ['Protocols', ['wire/native.md', 'wire/']],
  ['Project', ['rules.md', 'measurements.md', 'adr/README.md']],
];

/** Pages of the clone's root that pages of docs/ link to. */
const FROM_ROOT = ['ARCHITECTURE.md', 'CONTEXT.md', 'CHANGELOG.md'];

/** Pages as { source, target }: a Markdown file from the root of the clone, and its place in the site. */
export function findPages(root) {
  const docs = readdirSync(join(root, 'docs'), { recursive: true })
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => ({ source: join('docs', name), target: targetOf(name) }));
  const project = FROM_ROOT.map((name) => ({
    source: name,
    target: `project/${name.toLowerCase().replace('.md', '.html')}`,
  }));
  return [...docs, ...project];
}

function targetOf(name) {
  return join(dirname(name), basename(name).replace(/^README\.md$/, 'index.md')).replace(
    /\.md$/,
    '.html',
  );
}

/** Groups of pages in their order. */
export function arrange(pages) {
  const left = new Map(pages.map((page) => [page.source.replace(/^docs\//, ''), page]));
  const take = (name) => {
    const page = left.get(name);
    left.delete(name);
    return page ? [page] : [];
  };
  const folders = (names) => names.filter((name) => name.endsWith('/'));
  const groups = GROUPS.map(([title, names]) => ({
    title,
    folders: folders(names),
    pages: names.filter((name) => !name.endsWith('/')).flatMap(take),
  }));
  for (const group of groups)
    for (const name of [...left.keys()])
      if (group.folders.includes(`${dirname(name)}/`)) group.pages.push(...take(name));
  groups.at(-1).pages.push(...FROM_ROOT.flatMap(take));
  // Each decision is listed by the page of decisions.
  for (const name of [...left.keys()]) if (name.startsWith('adr/')) left.delete(name);
  groups.splice(1, 0, { title: 'More', pages: [...left.values()] });
  return groups.filter(({ pages: found }) => found.length > 0);
}
