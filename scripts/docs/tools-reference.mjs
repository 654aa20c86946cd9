// The tools for models as Markdown, made from the definitions that models get.
import { fieldTable } from './http-reference.mjs';
import { cell } from './cell.mjs';

export function toolsReference(definitions) {
  const rows = definitions.map(({ name, description }) => {
    return `| [\`${name}\`](#${name}) | ${cell(description.split(/(?<=\.)\s/)[0] ?? '')} |`;
  });
  return [
    `| tool | |\n| --- | --- |\n${rows.join('\n')}`,
    ...definitions.map(({ name, description, inputSchema, outputSchema }) =>
      [
        `## ${name} {#${name}}`,
        cell(description),
        `Arguments:\n\n${fieldTable(inputSchema)}`,
        `Result:\n\n${fieldTable(outputSchema)}`,
      ].join('\n\n'),
    ),
  ].join('\n\n');
}
