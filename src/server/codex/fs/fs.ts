// The filesystem methods of codex: fs/*. What a path may reach is fs-reach.ts, how it is held fs-place.ts.

import type { FileHandle } from 'node:fs/promises';
import { fsError, refused } from './error.ts';
import { Connections } from './connection.ts';
import { decodeBase64, flagOr, object, oneOf } from './params.ts';
import { makeFolder, metadataOf, openToRead, openToWrite, withPlace, type Way } from './place.ts';
import { reachOf } from './reach.ts';
import { readWhole } from './read.ts';
import { copyTree, listFolder, removeTree } from './tree.ts';
import { formatUri, parseUri, type BytePath } from './uri.ts';
import { walk, walkOptions } from './walk.ts';
import { Fields, invalid } from '../params.ts';
import {
  RpcError,
  rpcCodes,
  type CodexSession,
  type CodexSurroundings,
  type Method,
  type MethodTable,
} from '../rpc.ts';

export function fsMethods(surroundings: CodexSurroundings): MethodTable {
  const connections = new Connections();
  const tmpdir = surroundings.env['TMPDIR'];
  const way = async (fields: Fields, session: CodexSession): Promise<Way> => ({
    reach: await reachOf(session, fields.raw('sandbox'), tmpdir),
    follow: flagOr(fields, 'followSymlinks', true),
  });
  const methods = { ...fileMethods(way), ...treeMethods(way), ...heldMethods(connections, way) };
  return Object.fromEntries(
    Object.entries({ ...methods, 'fs/watchMissing': watchMissing(connections) }).map(
      ([name, method]) => [name, answering(name, method)],
    ),
  );
}

type FsMethod = (fields: Fields, session: CodexSession) => Promise<unknown>;
type WayOf = (fields: Fields, session: CodexSession) => Promise<Way>;
type FsTable = Readonly<Record<string, FsMethod>>;

function answering(name: string, method: FsMethod): Method {
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

function fileMethods(way: WayOf): FsTable {
  return {
    'fs/readFile': async (fields, session) => {
      const path = parseUri(fields.text('path'));
      const file = await openToRead(path, await way(fields, session));
      return { dataBase64: await closing(file, readWhole) };
    },
    'fs/writeFile': async (fields, session) => {
      const path = parseUri(fields.text('path'));
      const decoded = decodeBase64(fields.text('dataBase64'));
      if ('problem' in decoded)
        throw refused(`fs/writeFile requires valid base64 dataBase64: ${decoded.problem}`);
      const file = await openToWrite(path, await way(fields, session));
      await closing(file, async () => {
        await file.truncate(0);
        await file.writeFile(decoded.bytes);
      });
      return {};
    },
    'fs/getMetadata': async (fields, session) =>
      metadataOf(parseUri(fields.text('path')), await way(fields, session)),
    'fs/canonicalize': async (fields, session) => {
      const path = parseUri(fields.text('path'));
      return withPlace(path, await way(fields, session), async ({ real }) => ({
        path: formatUri(real),
      }));
    },
  };
}

function treeMethods(way: WayOf): FsTable {
  return {
    'fs/createDirectory': async (fields, session) => {
      const path = parseUri(fields.text('path'));
      await makeFolder(path, flagOr(fields, 'recursive', true), await way(fields, session));
      return {};
    },
    'fs/readDirectory': async (fields, session) => ({
      entries: await listFolder(parseUri(fields.text('path')), await way(fields, session)),
    }),
    'fs/walk': async (fields, session) => {
      const path = parseUri(fields.text('path'));
      const options = walkOptions(object(fields, 'options', 'FsWalkOptions'));
      return walk(path, options, { ...(await way(fields, session)), follow: true });
    },
    'fs/remove': async (fields, session) => {
      const path = parseUri(fields.text('path'));
      const options = {
        recursive: flagOr(fields, 'recursive', true),
        force: flagOr(fields, 'force', true),
      };
      await removeTree(path, options, await way(fields, session));
      return {};
    },
    'fs/copy': async (fields, session) => {
      const from = parseUri(fields.text('sourcePath'));
      const to = parseUri(fields.text('destinationPath'));
      const recursive = fields.flag('recursive');
      await copyTree(from, to, recursive, await way(fields, session));
      return {};
    },
  };
}

function heldMethods(connections: Connections, way: WayOf): FsTable {
  return {
    'fs/open': async (fields, session) => {
      const handleId = fields.text('handleId');
      const path = parseUri(fields.text('path'));
      const word = fields.raw('mode');
      const mode = word === undefined ? 'read' : oneOf(word, ['read', 'replace']);
      const at = { path, way: await way(fields, session) };
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
    const missing = fields.texts('missing').map(ownPath);
    const uri = fields.optionalText('present');
    const present = uri === undefined ? undefined : ownPath(uri);
    const foreign = missing.includes(undefined) || (uri !== undefined && present === undefined);
    const wanted = foreign
      ? undefined
      : { missing: missing.filter((path) => path !== undefined), present };
    return { watching: await connections.of(session).watch(watchId, wanted) };
  };
}

/** Undefined for a path of another machine, of which nothing can be known here. */
function ownPath(uri: string): BytePath | undefined {
  try {
    return parseUri(uri);
  } catch (error) {
    if (error instanceof RpcError && error.code === rpcCodes.refused) return undefined;
    throw error;
  }
}

async function closing<T>(file: FileHandle, use: (file: FileHandle) => Promise<T>): Promise<T> {
  try {
    return await use(file);
  } finally {
    await file.close();
  }
}
