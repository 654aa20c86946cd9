// Answers about the machine of a client's commands: environment/info, environment/status, environmentConfig/read.

import { accessSync, constants } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { errnoOf } from '../../../base/disk.ts';
import { codexHomeOf, SYSTEM_FOLDER } from './codex-home.ts';
import { selectToml, TomlProblem } from './toml.ts';
import { fsError } from '../fs/error.ts';
import { openToRead } from '../fs/opened-path.ts';
import { accessPolicyOf } from '../fs/access-policy.ts';
import { readUpTo } from '../fs/read.ts';
import { bytePath, formatUri, parseUri } from '../fs/uri.ts';
import { Fields, invalid, noParams } from '../params.ts';
import {
  RpcError,
  rpcCodes,
  type CodexSession,
  type CodexSurroundings,
  type MethodTable,
} from '../rpc.ts';

/** Also the `environmentInfo` of the answer to `initialize`. methods.ts adds the capabilities of processes. */
export interface EnvironmentInfo {
  readonly shell: { readonly name: string; readonly path: string };
  readonly capabilities?: Readonly<Record<string, boolean>>;
  readonly [field: string]: unknown;
}

/** Each stands for methods that exist; a name that is absent counts as unsupported. */
const capabilities = {
  capabilityDiscoverySandbox: true,
  capabilityDiscoveryV2: true,
  fsWatchMissing: true,
  environmentConfigRead: true,
  httpHeaderEnvVars: true,
  sandboxedFileStreaming: true,
  fileWriteStreaming: true,
  shellSnapshotV2: true,
} as const;

export function environmentInfo({
  env,
  cwd,
  userHome,
  version,
}: CodexSurroundings): EnvironmentInfo {
  const path = shellOf(env['SHELL']);
  return {
    shell: { name: basename(path), path },
    executorVersion: version,
    cwd: uriOf(cwd),
    userHomeDir: uriOf(userHome),
    platformOs: process.platform,
    temporaryDirectories: [],
    tempDir: uriOf(env['TMPDIR']?.startsWith('/') ? env['TMPDIR'] : tmpdir()),
    capabilities,
  };
}

/** The user's shell, or the first that exists. */
function shellOf(own: string | undefined): string {
  const candidates = [...(own?.startsWith('/') ? [own] : []), '/bin/bash', '/usr/bin/bash'];
  return candidates.find(isProgram) ?? '/bin/sh';
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export function environmentMethods(
  surroundings: CodexSurroundings,
  info: () => EnvironmentInfo,
): MethodTable {
  return {
    'environment/info': async (params) => {
      noParams(params);
      return info();
    },
    'environment/status': async (params) => {
      noParams(params);
      return { status: 'ready' };
    },
    'environmentConfig/read': (params, session) => readConfig(params, session, surroundings),
  };
}

/** More than anyone writes by hand, and parsed in a fifth of a second. */
const MAX_CONFIG_BYTES = 256 * 1024;

type Paths = readonly (readonly string[])[];

async function readConfig(
  params: unknown,
  session: CodexSession,
  surroundings: CodexSurroundings,
): Promise<unknown> {
  const fields = new Fields(params, 'struct EnvironmentConfigReadParams');
  parseUri(fields.text('cwd'));
  const config = pathsOf(fields, 'configPaths');
  const requirements = pathsOf(fields, 'requirementsPaths');
  if (config.length + requirements.length === 0)
    throw invalid('at least one config or requirements path is required');
  const codexHome = codexHomeOf(surroundings);
  return {
    userHomeDir: uriOf(surroundings.userHome),
    codexHomeDir: uriOf(codexHome),
    hostname: hostname(),
    // Weakest first, in the order of codex's layers.
    config: await layersOf(config, session, [
      { kind: 'system', file: join(SYSTEM_FOLDER, 'config.toml') },
      { kind: 'user', file: join(codexHome, 'config.toml') },
    ]),
    requirements: await layersOf(requirements, session, [
      { kind: 'system', file: join(SYSTEM_FOLDER, 'requirements.toml') },
    ]),
  };
}

function pathsOf(fields: Fields, name: string): Paths {
  return fields.list(name).map((path) => {
    const keys = new Fields({ path }, 'struct TomlPath').texts('path');
    if (keys.length === 0) throw invalid('TOML paths must contain at least one key segment');
    return keys;
  });
}

interface Source {
  readonly kind: 'system' | 'user';
  readonly file: string;
}

async function layersOf(
  paths: Paths,
  session: CodexSession,
  sources: readonly Source[],
): Promise<unknown> {
  const layers: { source: string; baseDir: string; toml: string }[] = [];
  for (const { kind, file } of paths.length === 0 ? [] : sources) {
    const text = await readConfigFile(file, session);
    const toml = text === undefined ? undefined : await selectLayer(text, paths, file);
    if (toml !== undefined)
      layers.push({ source: `${kind} (${file})`, baseDir: uriOf(dirname(file)), toml });
  }
  return { layers, cloudInsertionIndex: 0 };
}

async function selectLayer(text: string, paths: Paths, file: string): Promise<string | undefined> {
  try {
    return await selectToml(text, paths);
  } catch (error) {
    if (!(error instanceof TomlProblem)) throw error;
    throw configProblem(`${file}:${error.message}`);
  }
}

/** Undefined if the file does not exist. */
async function readConfigFile(file: string, session: CodexSession): Promise<string | undefined> {
  try {
    const access = await accessPolicyOf(session, undefined, undefined);
    const handle = await openToRead(bytePath(file), { access, follow: true });
    try {
      const bytes = await readUpTo(handle, MAX_CONFIG_BYTES);
      if (bytes === 'too long')
        throw configProblem(`${file} is larger than ${MAX_CONFIG_BYTES} bytes`);
      return bytes.toString('utf8');
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (error instanceof RpcError && error.code !== rpcCodes.refused) throw error;
    const code = errnoOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw configProblem(`${file}: ${fsError(error)?.message ?? String(error)}`);
  }
}

function configProblem(reason: string): RpcError {
  return new RpcError(rpcCodes.failed, `failed to load executor-local config: ${reason}`);
}

function uriOf(path: string): string {
  return formatUri(bytePath(path));
}
