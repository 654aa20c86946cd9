// The HTTP operations and their shapes as Markdown, made from the document of /openapi.json.
import { cell } from './cell.mjs';

export function httpReference(document) {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const contents = operations.map(({ path, method, operation }) => {
    const { operationId, summary } = operation;
    return `| [\`${method.toUpperCase()} ${path}\`](#${operationId}) | ${cell(summary)} |`;
  });
  return [
    document.info.description,
    `| operation | |\n| --- | --- |\n${contents.join('\n')}`,
    '## Operations',
    ...operations.map(({ path, method, operation }) => section(path, method, operation)),
    '## Shapes',
    ...Object.entries(document.components.schemas).map(shapeSection),
  ].join('\n\n');
}

function section(path, method, operation) {
  const { operationId, summary, description, parameters, requestBody, responses } = operation;
  const body = requestBody?.content['application/json']?.schema;
  const [media, answer] = Object.entries(responses['200']?.content ?? {})[0] ?? ['', undefined];
  return [
    `### \`${method.toUpperCase()} ${path}\` {#${operationId}}`,
    `${summary}.${description === undefined ? '' : ` ${description}`}`,
    ...(parameters.length > 0 ? [parameterTable(parameters)] : []),
    ...(body ? [`Body:\n\n${fieldTable(body)}`] : []),
    `Answers \`${media}\`${answer ? `: ${typeText(answer.schema)}` : ''}`,
  ].join('\n\n');
}

function parameterTable(parameters) {
  const rows = parameters.map(
    ({ name, in: place, required, description = '', schema }) =>
      `| \`${name}\` | ${place}${required ? ', required' : ''} | ${cell(typeText(schema))} | ${cell(description)} |`,
  );
  return `| parameter | in | type | |\n| --- | --- | --- | --- |\n${rows.join('\n')}`;
}

export function fieldTable(schema) {
  const required = schema.required ?? [];
  const rows = Object.entries(schema.properties ?? {}).map(([name, field]) => {
    const need = required.includes(name) ? ', required' : '';
    return `| \`${name}\` | ${cell(typeText(field))}${need} | ${cell(field.description ?? '')} |`;
  });
  return rows.length === 0
    ? 'No fields.'
    : `| field | type | |\n| --- | --- | --- |\n${rows.join('\n')}`;
}

function shapeSection([name, schema]) {
  const options = schema.oneOf ?? [schema];
  const tables = options.map(fieldTable).join('\n\nor\n\n');
  return `### ${name} {#shape-${name}}\n\n${options.length > 1 ? 'One of:\n\n' : ''}${tables}`;
}

/** A type in a few words, with a link if it has a name. */
function typeText(schema) {
  const reference = schema.$ref;
  if (typeof reference === 'string') {
    const name = reference.slice(reference.lastIndexOf('/') + 1);
    return `[${name}](#shape-${name})`;
  }
  if ('const' in schema) return `\`${JSON.stringify(schema.const)}\``;
  if (Array.isArray(schema.enum)) return schema.enum.map((each) => `\`${each}\``).join(' or ');
  for (const several of [schema.oneOf, schema.anyOf])
    if (Array.isArray(several)) return several.map(typeText).join(' or ');
  if (schema.type === 'array') return `list of ${typeText(schema.items ?? {})}`;
  if (schema.type === undefined) return 'anything';
  if (schema.type !== 'object') return `${schema.type}${bounds(schema)}`;
  const fields = Object.entries(schema.properties ?? {});
  const inside = fields.map(([name, field]) => `\`${name}\`: ${typeText(field)}`);
  return inside.length > 0 ? `{ ${inside.join(', ')} }` : 'object';
}

function bounds({ minimum, maximum }) {
  if (typeof minimum !== 'number' || typeof maximum !== 'number' || maximum > 1e9) return '';
  return ` ${minimum} to ${maximum}`;
}
