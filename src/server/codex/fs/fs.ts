// The filesystem methods of codex: fs/*. fs/access-policy.ts decides what a path may reach, fs/opened-path.ts opens it.

import type { FileHandle } from 'node:fs/promises';
import { fsError, refused } from './error.ts';
import { Connections } from './connection.ts';
import {
  makeFolder,
  metadataOf,
  openToRead,
  openToWrite,
  withOpened,
  type PathOptions,
} from './opened-path.ts';
import { accessPolicyOf } from './access-policy.ts';
import { readWhole } from './read.ts';
import { copyTree, listFolder, removeTree } from './tree.ts';
import { formatUri, parseUri, parseOwnUri } from './uri.ts';
import { walk, walkOptions } from './walk.ts';
import { Fields, invalid, decodeBase64 } from '../params.ts';
import {
  RpcError,
  type CodexSession,
  type CodexSurroundings,
  type Method,
  type MethodTable,
} from '../rpc.ts';

export function fsMethods(surroundings: CodexSurroundings): MethodTable {
  const connections = new Connections();
  const tmpdir = surroundings.env['TMPDIR'];
  const pathOptions = async (fields: Fields, session: CodexSession): Promise<PathOptions> => ({
    access: await accessPolicyOf(session, fields.raw('sandbox'), tmpdir),
    follow: fields.optionalFlag('followSymlinks', true),
  });
  const methods = {
    ...fileMethods(pathOptions),
    ...treeMethods(pathOptions),
    ...handleMethods(connections, pathOptions),
  };
  return Object.fromEntries(
    Object.entries({ ...methods, 'fs/watchMissing': watchMissing(connections) }).map(
      ([name, method]) => [name, toMethod(name, method)],
    ),
  );
}

type FsMethod = (fields: Fields, session: CodexSession) => Promise<unknown>;
type ReadPathOptions = (fields: Fields, session: CodexSession) => Promise<PathOptions>;
type FsTable = Readonly<Record<string, FsMethod>>;

function toMethod(name: string, method: FsMethod): Method {
  const part = name.slice('fs/'.length);
  const shape = `struct WireFs${part.charAt(0).toUpperCase()}${part.slice(1)}Params`;
  return async (params, session) => {
    try {
      return await method(new Fields(params, shape), session);
    } catch (thrown) {
      throw fsError(thrown) ?? thrown;
    }
  };
}

function fileMethods(pathOptions: ReadPathOptions): FsTable {
  return {
    'fs/readFile': async (fields, session) => {
      const path = parseUri(fields.text('path'));
      const file = await openToRead(path, await pathOptions(fields, session));
      return { dataBase64: await withFile(file, readWhole) };
    },
    'fs/writeFile': async (fields, session) => {
      const path = parseUri(fields.text('path'));
      const decoded = decodeBase64(fields.text('dataBase64'));
      if ('problem' in decoded)
        throw refused(`fs/writeFile requires valid base64 dataBase64: ${decoded.problem}`);
      const file = await openToWrite(path, await pathOptions(fields, session));
      await withFile(file, async () => {
        await file.truncate(0);
        await file.writeFile(decoded.bytes);
      });
      return {};
    },
    'fs/getMetadata': async (fields, session) =>
      metadataOf(parseUri(fields.text('path')), await pathOptions(fields, session)),
    'fs/canonicalize': async (fields, session) => {
      const path = parseUri(fields.text('path'));
      return withOpened(path, await pathOptions(fields, session), async ({ real }) => ({
        path: formatUri(real),
      }));
    },
  };
}

function treeMethods(pathOptions: ReadPathOptions): FsTable {
  return {
    'fs/createDirectory': async (fields, session) => {
      const path = parseUri(fields.text('path'));
      await makeFolder(
        path,
        fields.optionalFlag('recursive', true),
        await pathOptions(fields, session),
      );
      return {};
    },
    'fs/readDirectory': async (fields, session) => ({
      entries: await listFolder(parseUri(fields.text('path')), await pathOptions(fields, session)),
    }),
    'fs/walk': async (fields, session) => {
      const path = parseUri(fields.text('path'));
      const options = walkOptions(fields.object('options', 'FsWalkOptions'));
      return walk(path, options, { ...(await pathOptions(fields, session)), follow: true });
    },
    'fs/remove': async (fields, session) => {
      const path = parseUri(fields.text('path'));
      const options = {
        recursive: fields.optionalFlag('recursive', true),
        force: fields.optionalFlag('force', true),
      };
      await removeTree(path, options, await pathOptions(fields, session));
      return {};
    },
    'fs/copy': async (fields, session) => {
      const from = parseUri(fields.text('sourcePath'));
      const to = parseUri(fields.text('destinationPath'));
      const recursive = fields.flag('recursive');
      await copyTree(from, to, recursive, await pathOptions(fields, session));
      return {};
    },
  };
}

function handleMethods(connections: Connections, pathOptions: ReadPathOptions): FsTable {
  return {
    'fs/open': async (fields, session) => {
      const handleId = fields.text('handleId');
      const path = parseUri(fields.text('path'));
      const word = fields.raw('mode');
      const mode = word === undefined ? 'read' : fields.choice('mode', ['read', 'replace']);
      const at = { path, options: await pathOptions(fields, session) };
      await connections.of(session).handles.open(handleId, mode, at);
      return { handleId };
    },
    'fs/readBlock': async (fields, session) => {
      const { handles } = connections.of(session);
      const [id, offset] = [fields.text('handleId'), fields.count('offset')];
      const { chunk, eof } = await handles.read(id, offset, fields.count('len'));
      return { chunk: chunk.toString('base64'), eof };
    },
    'fs/writeBlock': async (fields, session) => {
      const { handles } = connections.of(session);
      const [id, offset] = [fields.text('handleId'), fields.count('offset')];
      const decoded = decodeBase64(fields.text('chunk'));
      if ('problem' in decoded) throw invalid(decoded.problem);
      await handles.write(id, offset, decoded.bytes);
      return {};
    },
    'fs/close': async (fields, session) => {
      await connections.of(session).handles.close(fields.text('handleId'));
      return {};
    },
  };
}

function watchMissing(connections: Connections): FsMethod {
  return async (fields, session) => {
    const watchId = fields.count('watchId');
    const missing = fields.texts('missing').map(parseOwnUri);
    const uri = fields.optionalText('present');
    const present = uri === undefined ? undefined : parseOwnUri(uri);
    const own = missing.filter((path) => typeof path === 'string');
    const paths =
      own.length < missing.length || present instanceof RpcError
        ? undefined
        : { missing: own, present };
    return { watching: await connections.of(session).watch(watchId, paths) };
  };
}

async function withFile<T>(file: FileHandle, use: (file: FileHandle) => Promise<T>): Promise<T> {
  try {
    return await use(file);
  } finally {
    await file.close();
  }
}
