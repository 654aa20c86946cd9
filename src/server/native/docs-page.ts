// The native operations as one HTML page, made from the document of /openapi.json. It has no script and loads nothing.

import { createHash } from 'node:crypto';
import { errors } from '../../protocol/errors.ts';
import type { OpenApi, OperationDoc, Parameter } from './openapi.ts';
import type { JsonSchema } from '../../protocol/json-schema.ts';

const STYLE = `
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font-family: ui-monospace, monospace; font-size: 0.9em; }
pre { padding: 0.75rem; overflow-x: auto; border: 1px solid #8886; border-radius: 4px; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #8886; }
h3 { margin-top: 2rem; }
.method { display: inline-block; min-width: 4.5rem; font-weight: bold; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.75rem 0.25rem 0; border-bottom: 1px solid #8883; }
`;

const styleHash = createHash('sha256').update(STYLE).digest('base64');

/** Allows only the style above: nothing is fetched, run, sent or framed. */
export const DOCS_POLICY = `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

export function docsPage(document: OpenApi): string {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const contents = operations.map(({ path, method, operation }) => {
    const { operationId, summary } = operation;
    return `<tr><td><span class="method">${method.toUpperCase()}</span> <a href="#${escape(operationId)}"><code>${escape(path)}</code></a></td><td>${escape(summary)}</td></tr>`;
  });
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Holdfast ${escape(document.info.version)}</title>
<style>${STYLE}</style></head>
<body>
<h1>Holdfast ${escape(document.info.version)}</h1>
<p>${escape(document.info.description)}</p>
<pre>curl --unix-socket ~/.holdfast/server.sock -H 'Content-Type: application/json' \\
  -d '{"command":"make test"}' http://localhost/v1/processes</pre>
<table>${contents.join('\n')}</table>
<h2>Operations</h2>
${operations.map(({ path, method, operation }) => section(path, method, operation)).join('\n')}
<h2>Shapes</h2>
${Object.entries(document.components.schemas).map(shapeSection).join('\n')}
<h2>Errors</h2>
${errorTable()}
</body>
</html>
`;
}

function section(path: string, method: string, operation: OperationDoc): string {
  const { operationId, summary, description, parameters, requestBody, responses } = operation;
  const body = requestBody?.content['application/json']?.schema;
  const [media, answer] = Object.entries(responses['200']?.content ?? {})[0] ?? ['', undefined];
  return `<h3 id="${escape(operationId)}"><span class="method">${method.toUpperCase()}</span> <code>${escape(path)}</code></h3>
<p>${escape(summary)}.${description === undefined ? '' : ` ${escape(description)}`}</p>
${parameters.length > 0 ? parameterTable(parameters) : ''}
${body ? `<p>Body:</p>${fieldTable(body)}` : ''}
<p>Answers <code>${escape(media)}</code>: ${answer ? typeText(answer.schema) : ''}</p>`;
}

function parameterTable(parameters: readonly Parameter[]): string {
  const rows = parameters.map(({ name, in: place, required, description, schema }) => {
    return `<tr><td><code>${escape(name)}</code></td><td>${place}${required ? ', required' : ''}</td><td>${typeText(schema)}</td><td>${escape(description ?? '')}</td></tr>`;
  });
  return `<table>${rows.join('\n')}</table>`;
}

function fieldTable(schema: JsonSchema): string {
  const required = (schema['required'] ?? []) as readonly string[];
  const fields = Object.entries((schema['properties'] ?? {}) as Record<string, JsonSchema>);
  const rows = fields.map(([name, field]) => {
    return `<tr><td><code>${escape(name)}</code></td><td>${required.includes(name) ? 'required' : ''}</td><td>${typeText(field)}</td><td>${escape(descriptionOf(field))}</td></tr>`;
  });
  return `<table>${rows.join('\n')}</table>`;
}

function descriptionOf({ description }: JsonSchema): string {
  return typeof description === 'string' ? description : '';
}

function shapeSection([name, schema]: [string, JsonSchema]): string {
  const options = schema['oneOf'] as readonly JsonSchema[] | undefined;
  const body = options
    ? options.map((option) => `<p>One of:</p>${fieldTable(option)}`).join('\n')
    : fieldTable(schema);
  return `<h3 id="shape-${escape(name)}">${escape(name)}</h3>\n${body}`;
}

/** A type in a few words, with a link if it has a name. */
function typeText(schema: JsonSchema): string {
  const reference = schema['$ref'];
  if (typeof reference === 'string') {
    const name = escape(reference.slice(reference.lastIndexOf('/') + 1));
    return `<a href="#shape-${name}">${name}</a>`;
  }
  if ('const' in schema) return `<code>${escape(JSON.stringify(schema['const']))}</code>`;
  if (Array.isArray(schema['enum']))
    return schema['enum'].map((each) => `<code>${escape(String(each))}</code>`).join(' or ');
  if (Array.isArray(schema['oneOf']))
    return (schema['oneOf'] as JsonSchema[]).map(typeText).join(' or ');
  if (schema['type'] === 'array') return `list of ${typeText(schema['items'] as JsonSchema)}`;
  if (schema['type'] !== 'object') return `${escape(String(schema['type']))}${bounds(schema)}`;
  const fields = Object.entries((schema['properties'] ?? {}) as Record<string, JsonSchema>);
  const inside = fields.map(([name, field]) => `<code>${escape(name)}</code>: ${typeText(field)}`);
  return inside.length > 0 ? `{ ${inside.join(', ')} }` : 'object';
}

function bounds({ minimum, maximum }: JsonSchema): string {
  if (typeof minimum !== 'number' || typeof maximum !== 'number' || maximum > 1e9) return '';
  return ` ${minimum} to ${maximum}`;
}

function errorTable(): string {
  const rows = Object.entries(errors).map(([code, { http, retryable, remedy }]) => {
    return `<tr><td><code>${code}</code></td><td>${http}</td><td>${retryable ? 'retryable' : ''}</td><td>${escape(remedy)}</td></tr>`;
  });
  return `<table>${rows.join('\n')}</table>`;
}

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
}
