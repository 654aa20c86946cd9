// The commands as Markdown, as "holdfast help --json" describes them.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { cell } from './cell.mjs';

export function commandReference(built) {
  const text = execFileSync(process.execPath, [join(built, 'cli', 'main.js'), 'help', '--json'], {
    encoding: 'utf8',
    maxBuffer: 16 * 1024 * 1024,
  });
  const { commands, options } = JSON.parse(text).result;
  return [
    commands.map(({ name, summary }) => `| [\`${name}\`](#${placeOf(name)}) | ${cell(summary)} |`),
    'Every command takes:',
    optionTable(options),
    ...commands.map(section),
  ]
    .map((part) =>
      Array.isArray(part) ? `| command | |\n| --- | --- |\n${part.join('\n')}` : part,
    )
    .join('\n\n');
}

function placeOf(name) {
  return name.replaceAll(' ', '-');
}

function section({ name, usage, summary, notes, examples, options }) {
  const code = (lines) => `\`\`\`sh\n${lines.join('\n')}\n\`\`\``;
  return [
    `## holdfast ${name} {#${placeOf(name)}}`,
    cell(summary),
    `\`\`\`text\n${`holdfast ${name} ${usage}`.trimEnd()}\n\`\`\``,
    ...(notes.length > 0 ? [notesText(notes)] : []),
    ...(examples.length > 0 ? [code(examples)] : []),
    ...(Object.keys(options).length > 0 ? [optionTable(options)] : []),
  ].join('\n\n');
}

/** Lines that are aligned stay lines; all others are a paragraph. */
function notesText(notes) {
  if (notes.some((line) => / {2}/.test(line))) return `\`\`\`text\n${notes.join('\n')}\n\`\`\``;
  return cell(notes.join(' ')).replaceAll(/[*_`]/g, String.raw`\$&`);
}

function optionTable(options) {
  const rows = Object.entries(options)
    .filter(([, { hidden }]) => !hidden)
    .map(([name, { type, value, short, about }]) => {
      const word = type === 'string' ? ` ${value ?? 'VALUE'}` : '';
      return `| \`--${name}${word}\`${short ? `, \`-${short}\`` : ''} | ${cell(about)} |`;
    });
  return `| option | |\n| --- | --- |\n${rows.join('\n')}`;
}
