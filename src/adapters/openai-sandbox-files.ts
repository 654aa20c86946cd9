// The files of a sandbox of OpenAI's Agents SDK: those of the host, relative to the root of the manifest.

import { HoldfastError } from '../protocol/errors.ts';
import type { HostCommands } from './host-commands.ts';

/** An entry of a manifest. */
export interface SandboxEntry {
  readonly type: string;
  readonly content?: string | Uint8Array;
  readonly children?: Readonly<Record<string, SandboxEntry>>;
}

interface PathArgs {
  readonly path: string;
}

interface Patch extends PathArgs {
  readonly diff: string;
  readonly moveTo?: string;
}

export type ApplyDiff = (text: string, diff: string, mode?: 'default' | 'create') => string;

export type SandboxFiles = ReturnType<typeof sandboxFiles>;

/** The framework's limit. */
const MAX_IMAGE_BYTES = 10 * 1024 * 1024;
/** How files of each kind begin; in a RIFF file the kind comes after the length. */
const IMAGES: readonly (readonly [mediaType: string, pattern: RegExp])[] = [
  ['image/png', /^\x89PNG\r\n/],
  ['image/jpeg', /^\xff\xd8\xff/],
  ['image/gif', /^GIF8[79]a/],
  ['image/webp', /^RIFF[^]{4}WEBP/],
];

export function sandboxFiles(commands: HostCommands, applyDiff: ApplyDiff) {
  const readFile = async ({
    path,
    maxBytes,
  }: PathArgs & { readonly maxBytes?: number | undefined }): Promise<Uint8Array> => {
    const found = await commands.fileType(path);
    if (!found) throw problem(`File not found: ${path}`);
    if (found.type === 'directory') throw problem(`Not a file: ${path}`);
    if (maxBytes === undefined) return commands.output(['cat', '--', path]);
    return commands.output(['head', '-c', String(maxBytes), '--', path]);
  };
  const materializeEntry = async ({
    path,
    entry,
  }: PathArgs & { readonly entry: SandboxEntry }): Promise<void> => {
    if (entry.type === 'file') return commands.writeFile(path, entry.content ?? '');
    if (entry.type !== 'dir')
      throw problem(`The sandbox of Holdfast has no entries of type "${entry.type}": ${path}`);
    await commands.output(['mkdir', '-p', '--', path]);
    for (const [name, child] of Object.entries(entry.children ?? {}))
      await materializeEntry({ path: `${path}/${name}`, entry: child });
  };
  return {
    readFile,
    materializeEntry,

    async viewImage({ path }: PathArgs) {
      const found = await commands.fileType(path);
      if (found && found.size > MAX_IMAGE_BYTES)
        throw problem(`Image file exceeds the 10 MB limit: ${path}`);
      const data = Uint8Array.from(await readFile({ path }));
      const start = Buffer.from(data.subarray(0, 16)).toString('latin1');
      const [mediaType] = IMAGES.find(([, pattern]) => pattern.test(start)) ?? [];
      if (mediaType === undefined)
        throw problem(`Unsupported image format for view_image: ${path}`);
      return { type: 'image', image: { data, mediaType } } as const;
    },

    async listDir({ path }: PathArgs) {
      const entries = await commands.list(path);
      return entries.map(({ name, kind }) => {
        const type = kind === 'f' ? 'file' : kind === 'd' ? 'dir' : 'other';
        return { name, path: path === '.' ? name : `${path}/${name}`, type } as const;
      });
    },

    pathExists: async (path: string): Promise<boolean> =>
      (await commands.fileType(path)) !== undefined,

    directoryExists: async (path: string): Promise<boolean> =>
      (await commands.fileType(path))?.type === 'directory',

    createEditor: () => editorOf(commands, applyDiff, readFile),
  };
}

/** Applies patches of models. */
function editorOf(
  commands: HostCommands,
  applyDiff: ApplyDiff,
  readFile: (given: PathArgs) => Promise<Uint8Array>,
) {
  return {
    async createFile({ path, diff }: Patch): Promise<object> {
      await commands.writeFile(path, applyDiff('', diff, 'create'));
      return {};
    },
    async updateFile({ path, diff, moveTo }: Patch): Promise<object> {
      const text = Buffer.from(await readFile({ path })).toString('utf8');
      await commands.writeFile(moveTo ?? path, applyDiff(text, diff));
      if (moveTo !== undefined && moveTo !== path) await commands.output(['rm', '--', path]);
      return {};
    },
    async deleteFile({ path }: PathArgs): Promise<object> {
      await commands.output(['rm', '--', path]);
      return {};
    },
  };
}

function problem(text: string): HoldfastError {
  return new HoldfastError('invalid_input', text);
}
