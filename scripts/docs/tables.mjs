// Tables of the built program as Markdown.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { commandReference } from './command-reference.mjs';
import { httpReference } from './http-reference.mjs';
import { limitsReference } from './limits-reference.mjs';
import { sdkReference } from './sdk-reference.mjs';
import { toolsReference } from './tools-reference.mjs';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** By the name that a page puts into "<!-- made: NAME -->". */
export async function makeTables(built) {
  const load = (file) => import(pathToFileURL(join(built, file)).href);
  const { openApi } = await load('server/native/openapi.js');
  const { toolDefinitions } = await load('tools/definitions.js');
  const limits = await load('protocol/limits.js');
  const limitsSource = readFileSync(join(root, 'src/protocol/limits.ts'), 'utf8');
  return {
    commands: () => commandReference(built),
    http: () => httpReference(openApi()),
    limits: () => limitsReference(limits, limitsSource),
    sdk: () => sdkReference(built),
    tools: () => toolsReference(toolDefinitions),
  };
}
