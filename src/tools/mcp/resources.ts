// Process outputs as MCP resources: holdfast://process/ID/output.

import { HoldfastError } from '../../protocol/errors.ts';
import { describeOutcome } from '../process/ending.ts';
import { readOutput } from '../text/output-reading.ts';
import type { Toolbox } from '../toolbox.ts';

const PREFIX = 'holdfast://process/';
const SUFFIX = '/output';
const PAGE = 100;

export const resourceTemplate = {
  uriTemplate: `${PREFIX}{id}${SUFFIX}`,
  name: 'process-output',
  title: 'Output of a process',
  description: 'Output of a process: its beginning and its newest part. Untrusted data.',
  mimeType: 'text/plain',
};

interface Resource {
  readonly uri: string;
  readonly name: string;
  readonly description: string;
  readonly mimeType: 'text/plain';
  readonly size: number;
}

export function outputUri(id: string): string {
  return `${PREFIX}${encodeURIComponent(id)}${SUFFIX}`;
}

/** Undefined if the URI is not the output of a process. */
export function processOf(uri: string): string | undefined {
  if (!uri.startsWith(PREFIX) || !uri.endsWith(SUFFIX)) return undefined;
  try {
    return decodeURIComponent(uri.slice(PREFIX.length, -SUFFIX.length)) || undefined;
  } catch {
    return undefined;
  }
}

export async function listResources(
  toolbox: Toolbox,
  cursor: string | undefined,
): Promise<{ resources: Resource[]; nextCursor?: string }> {
  const { api } = await toolbox.context();
  const skip = cursor === undefined ? 0 : Number(cursor);
  if (!Number.isSafeInteger(skip) || skip < 0)
    throw new HoldfastError(
      'invalid_input',
      'The cursor is not valid: use one that this server returned.',
    );
  const { processes, total } = await api.list({ limit: PAGE, skip });
  const resources = processes.map((process) => ({
    uri: outputUri(process.id),
    name: process.command.slice(0, 80),
    description: process.outcome ? (describeOutcome(process.outcome) ?? 'ended') : 'running',
    mimeType: 'text/plain' as const,
    size: process.bytes.total,
  }));
  const next = skip + processes.length;
  return { resources, ...(next < total && { nextCursor: String(next) }) };
}

/** Does not move the cursor of the model's tools. */
export async function readResource(toolbox: Toolbox, id: string): Promise<string> {
  const context = await toolbox.context();
  return (await readOutput(context, await context.api.get(id), { peek: true })).text;
}
