// What the package exports, as Markdown: read from the declaration files that the compiler made, with their comments.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseAst } from 'rolldown/parseAst';

/** The main things first; all others follow by name. */
const FIRST = ['connect', 'embed', 'Holdfast', 'ProcessHandle', 'TerminalHandle', 'Toolbox'];
const ORDER = ['StartOptions', 'RunOptions', 'RunResult'];

export function sdkReference(built) {
  const found = exportsOf(join(built, 'index.d.ts'));
  const rank = ({ name }) => {
    const at = [...FIRST, ...ORDER].indexOf(name);
    return at < 0 ? Infinity : at;
  };
  const sorted = found.sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
  const main = sorted.filter(({ name }) => FIRST.includes(name));
  const others = sorted.filter(({ name }) => !FIRST.includes(name));
  return [
    ...main.map((each) => section(each, '##')),
    '## Everything else',
    ...others.map((each) => section(each, '###')),
  ].join('\n\n');
}

/** Names with the file and the name under which each is declared. */
function exportsOf(file) {
  const { body } = parse(file);
  return body.flatMap((statement) =>
    statement.type === 'ExportNamedDeclaration' && statement.source
      ? statement.specifiers.map(({ local, exported }) => ({
          name: exported.name,
          ...declarationOf(sourceOf(file, statement.source.value), local.name),
        }))
      : [],
  );
}

function sourceOf(file, name) {
  return join(dirname(file), name.replace(/\.[jt]s$/, '.d.ts'));
}

function parse(file) {
  const text = readFileSync(file, 'utf8');
  return { text, body: parseAst(text, { lang: 'dts' }, file).body };
}

function declarationOf(file, name) {
  const { text, body } = parse(file);
  for (const statement of body) {
    const node = statement.declaration ?? statement;
    const names = [node.id?.name, ...(node.declarations ?? []).map(({ id }) => id.name)];
    if (names.includes(name)) return { text, node, comment: commentBefore(text, statement.start) };
    // Declared elsewhere: exported from there, or imported from there and then exported.
    const from = statement.source && statement.specifiers?.find((each) => ownName(each) === name);
    if (from)
      return declarationOf(
        sourceOf(file, statement.source.value),
        (statement.type === 'ImportDeclaration' ? from.imported : from.local).name,
      );
  }
  throw new Error(`${file} does not declare ${name}`);
}

/** What this file calls it. */
function ownName({ type, exported, local }) {
  return (type === 'ExportSpecifier' ? exported : local).name;
}

/** The text of the comment that ends right before a place. */
function commentBefore(text, at) {
  const [, inside = ''] = /\/\*\*((?:(?!\*\/)[^])*)\*\/\s*$/.exec(text.slice(0, at)) ?? [];
  return inside
    .split('\n')
    .map((line) => line.replace(/^\s*\*? ?/, '').trim())
    .filter((line) => line !== '')
    .join(' ');
}

function section({ name, text, node, comment }, marks) {
  const members = node.body?.body?.filter(isPublic);
  const head = [`${marks} ${name} {#${name}}`, ...(comment ? [escaped(comment)] : [])];
  if (!members) return [...head, block(text.slice(node.start, node.end))].join('\n\n');
  const base = node.superClass ?? node.extends?.[0];
  const opening = text.slice(node.start, node.body.start).trim();
  return [
    ...head,
    ...(base ? [block(`${opening} { … }`)] : []),
    ...members.map((member) => {
      const about = commentBefore(text, member.start);
      const shown = text.slice(member.start, member.end).replaceAll(/^ {4}/gm, '');
      return `${block(shown)}${about ? `\n\n${escaped(about)}` : ''}`;
    }),
  ].join('\n\n');
}

function isPublic({ accessibility, key, type }) {
  return (
    accessibility !== 'private' &&
    accessibility !== 'protected' &&
    key?.name !== 'constructor' &&
    type !== 'TSIndexSignature'
  );
}

function block(code) {
  const text = code.replace(/^(?:export )?declare /, '').replaceAll(/^ {4}/gm, '  ');
  return `\`\`\`signature\n${text}\n\`\`\``;
}

function escaped(text) {
  return text.replaceAll(/<(?=[a-z!/])/gi, '&lt;');
}
