// process/start: from a client's parameters to a start of the host, with the peer's order of checks and its texts.

import type { CodexSurroundings } from '../rpc.ts';
import { RpcError, rpcCodes } from '../rpc.ts';
import { HoldfastError } from '../../../protocol/errors.ts';
import type { StartSpec } from '../../../protocol/operations.ts';
import { environmentOf } from './env-policy.ts';
import { hostId, nameLabels } from './names.ts';
import { Fields, invalid, pathOf } from '../params.ts';
import { sandboxed, type SandboxTools } from '../sandbox/sandbox.ts';
import { SANDBOX_LABEL } from '../sandbox/denial.ts';
import { unenforceable } from '../sandbox/policy.ts';
import { snapshotAsked, type SnapshotAsked } from './shell-snapshot.ts';

/** A process with this label goes on when its session is given up. */
export const KEEP_LABEL = 'codex.keep';

export interface StartAsked {
  readonly processId: string;
  readonly sandbox: unknown;
  /** The sandbox is to let the network through a proxy only. */
  readonly managedNetwork: boolean;
  readonly spec: StartSpec;
  /** The state of a login shell that its command may be started with. */
  readonly snapshot?: SnapshotAsked;
  /** What its environment was made of. */
  readonly login: { readonly policy: unknown; readonly given: Readonly<Record<string, string>> };
}

export function startAsked(params: unknown, { env: own }: CodexSurroundings): StartAsked {
  const fields = new Fields(params, 'struct WireExecParams');
  const processId = fields.text('processId');
  const argv = fields.texts('argv');
  const cwdUri = fields.text('cwd');
  const given = fields.variables('env');
  const tty = fields.flag('tty');
  const pipeStdin = fields.optionalFlag('pipeStdin');
  const arg0 = fields.optionalText('arg0');
  const env = environmentOf(given, fields.raw('envPolicy'), own);
  const keep = keepAsked(fields);
  const cwd = pathOf(cwdUri, 'cwd');
  if (argv.length === 0) throw invalid('argv must not be empty');
  const managedNetwork = fields.optionalFlag('enforceManagedNetwork');
  if (fields.has('networkProxy')) throw unenforceable();
  const snapshot = snapshotAsked(fields);
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

/** An addition: `onDetach: "keep"` lets the process outlive its session. */
function keepAsked(fields: Fields): boolean {
  const wanted = fields.optionalText('onDetach') ?? 'kill';
  if (wanted === 'kill' || wanted === 'keep') return wanted === 'keep';
  throw invalid(`unknown variant \`${wanted}\`, expected one of \`kill\`, \`keep\``);
}

/** What is refused before anything is started, in the words of the system that would have refused it. */
export function refuseUnstartable({ argv = [], cwd, env = {} }: StartSpec): void {
  if (argv[0] === '') throw failed('missing program for pipe spawn');
  const texts = [...argv, cwd ?? '', ...Object.keys(env), ...Object.values(env)];
  if (texts.some((text) => text.includes('\0'))) throw failed('nul byte found in provided data');
}

/** Wrapped so that the sandbox holds, or refused: never without it. */
export async function confined(
  { spec, sandbox, managedNetwork }: StartAsked,
  tools: SandboxTools,
): Promise<{ spec: StartSpec; sandboxType: string }> {
  if (sandbox === null) return { spec, sandboxType: 'none' };
  const { argv = [], arg0, env = {}, labels, ...rest } = spec;
  const wrapped = await sandboxed({ argv, arg0, env }, sandbox, tools);
  if (!wrapped) throw unenforceable();
  const { sandboxType, cutOff } = wrapped;
  if (sandboxType === 'none') return { spec, sandboxType };
  // Only through a proxy that decides about each connection: that is not to be had here.
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

const systemTexts: Readonly<Record<string, string>> = {
  EPERM: 'Operation not permitted (os error 1)',
  ENOENT: 'No such file or directory (os error 2)',
  E2BIG: 'Argument list too long (os error 7)',
  ENOEXEC: 'Exec format error (os error 8)',
  EAGAIN: 'Resource temporarily unavailable (os error 11)',
  ENOMEM: 'Cannot allocate memory (os error 12)',
  EACCES: 'Permission denied (os error 13)',
  ENOTDIR: 'Not a directory (os error 20)',
  ENFILE: 'Too many open files in system (os error 23)',
  EMFILE: 'Too many open files (os error 24)',
};

/** A refusal of the host as the peer's client knows it. */
export function startProblem(error: unknown): unknown {
  if (!(error instanceof HoldfastError)) return error;
  const { code, details, message } = error;
  const errno = typeof details['errno'] === 'string' ? details['errno'] : errnoOfCode(error);
  const text = errno === undefined ? undefined : systemTexts[errno];
  if (text !== undefined) return failed(text);
  return code === 'limit_reached' ? new RpcError(rpcCodes.refused, message) : failed(message);
}

function errnoOfCode({ code, message }: HoldfastError): string | undefined {
  if (code === 'program_not_found' || code === 'cwd_not_found') return 'ENOENT';
  if (code === 'cwd_not_usable') return message.includes('not a directory') ? 'ENOTDIR' : 'EACCES';
  if (code === 'program_not_executable') return 'EACCES';
  return code === 'arguments_too_long' ? 'E2BIG' : undefined;
}
