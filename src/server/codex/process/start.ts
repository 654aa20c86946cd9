// process/start: turns a client's parameters into a start of the host, with codex's order of checks and its texts.

import type { CodexSurroundings } from '../rpc.ts';
import { RpcError, rpcCodes } from '../rpc.ts';
import { HoldfastError } from '../../../protocol/errors.ts';
import type { StartSpec } from '../../../protocol/operations.ts';
import { buildEnvironment } from './env-policy.ts';
import { hostId, nameLabels } from './names.ts';
import { Fields, invalid, pathOf } from '../params.ts';
import { wrapInSandbox, type SandboxTools } from '../sandbox/sandbox.ts';
import { SANDBOX_LABEL } from '../sandbox/denial.ts';
import { unenforceable } from '../sandbox/policy.ts';
import { parseSnapshot, type SnapshotRequest } from './shell-snapshot.ts';
import { osText } from '../fs/error.ts';

/** A process with this label continues when its session ends. */
export const KEEP_LABEL = 'codex.keep';

export interface StartRequest {
  readonly processId: string;
  readonly sandbox: unknown;
  /** The sandbox must allow the network only through a proxy. */
  readonly managedNetwork: boolean;
  readonly spec: StartSpec;
  /** The login shell state that the command may be started with. */
  readonly snapshot?: SnapshotRequest;
  /** The inputs of its environment. */
  readonly login: { readonly policy: unknown; readonly given: Readonly<Record<string, string>> };
}

export function parseStart(params: unknown, { env: own }: CodexSurroundings): StartRequest {
  const fields = new Fields(params, 'struct WireExecParams');
  const processId = fields.text('processId');
  const argv = fields.texts('argv');
  const cwdUri = fields.text('cwd');
  const given = fields.variables('env');
  const tty = fields.flag('tty');
  const pipeStdin = fields.optionalFlag('pipeStdin');
  const arg0 = fields.optionalText('arg0');
  const env = buildEnvironment(given, fields.raw('envPolicy'), own);
  const keep = parseKeep(fields);
  const cwd = pathOf(cwdUri, 'cwd');
  if (argv.length === 0) throw invalid('argv must not be empty');
  const managedNetwork = fields.optionalFlag('enforceManagedNetwork');
  if (fields.has('networkProxy')) throw unenforceable();
  const snapshot = parseSnapshot(fields);
  const labels = { ...nameLabels(processId), ...(keep && { [KEEP_LABEL]: '1' }) };
  return {
    processId,
    managedNetwork,
    ...(snapshot && { snapshot }),
    login: { policy: fields.raw('envPolicy'), given },
    sandbox: fields.raw('sandbox') ?? null,
    spec: {
      id: hostId(processId),
      argv,
      ...(arg0 !== undefined && { arg0 }),
      cwd,
      environment: { inherit: 'none' },
      env,
      streams: tty ? 'pty' : 'separate',
      stdin: tty || pipeStdin ? 'pipe' : 'none',
      ...(Object.keys(labels).length > 0 && { labels }),
    },
  };
}

/** An extension: `onDetach: "keep"` lets the process outlive its session. */
function parseKeep(fields: Fields): boolean {
  const wanted = fields.optionalText('onDetach') ?? 'kill';
  if (wanted === 'kill' || wanted === 'keep') return wanted === 'keep';
  throw invalid(`unknown variant \`${wanted}\`, expected one of \`kill\`, \`keep\``);
}

/** Refused before anything is started, with the text of the operating system. */
export function refuseUnstartable({ argv = [], cwd, env = {} }: StartSpec): void {
  if (argv[0] === '') throw failed('missing program for pipe spawn');
  const texts = [...argv, cwd ?? '', ...Object.keys(env), ...Object.values(env)];
  if (texts.some((text) => text.includes('\0'))) throw failed('nul byte found in provided data');
}

/** Wraps the command in its sandbox, or refuses: never runs it without. */
export async function confineStart(
  { spec, sandbox, managedNetwork }: StartRequest,
  tools: SandboxTools,
): Promise<{ spec: StartSpec; sandboxType: string }> {
  if (sandbox === null) return { spec, sandboxType: 'none' };
  const { argv = [], arg0, env = {}, labels, ...rest } = spec;
  const wrapped = await wrapInSandbox({ argv, arg0, env }, sandbox, tools);
  if (!wrapped) throw unenforceable();
  const { sandboxType, cutOff } = wrapped;
  if (sandboxType === 'none') return { spec, sandboxType };
  // That needs a proxy that decides about each connection, which we do not have.
  if (managedNetwork) throw unenforceable();
  return {
    spec: {
      ...rest,
      argv: [...wrapped.argv],
      env: { ...wrapped.env },
      labels: { ...labels, ...(cutOff && { [SANDBOX_LABEL]: cutOff }) },
    },
    sandboxType,
  };
}

function failed(message: string): RpcError {
  return new RpcError(rpcCodes.failed, message);
}

/** An error of the host as codex's client knows it. */
export function toRpcError(error: unknown): unknown {
  if (!(error instanceof HoldfastError)) return error;
  const { code, details, message } = error;
  const errno = typeof details['errno'] === 'string' ? details['errno'] : errnoOfCode(error);
  if (errno !== undefined) return failed(osText(errno));
  return code === 'limit_reached' ? new RpcError(rpcCodes.refused, message) : failed(message);
}

function errnoOfCode({ code, message }: HoldfastError): string | undefined {
  if (code === 'program_not_found' || code === 'cwd_not_found') return 'ENOENT';
  if (code === 'cwd_not_usable') return message.includes('not a directory') ? 'ENOTDIR' : 'EACCES';
  if (code === 'program_not_executable') return 'EACCES';
  return code === 'arguments_too_long' ? 'E2BIG' : undefined;
}
