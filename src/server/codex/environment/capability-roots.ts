// capabilityRoots/discoverV1: the files of plugins and skills in folders that a client names. The client interprets them.

import { accessPolicyOf } from '../fs/access-policy.ts';
import { parseOwnUri } from '../fs/uri.ts';
import { Fields } from '../params.ts';
import {
  RpcError,
  rpcCodes,
  type CodexSession,
  type CodexSurroundings,
  type MethodTable,
} from '../rpc.ts';
import { MAX_ANSWER_BYTES, scanRoot, type RootRequest } from './root-scan.ts';

/** The limit of codex's server. */
const MAX_ROOTS = 128;

export function capabilityMethods({ env }: CodexSurroundings): MethodTable {
  return {
    'capabilityRoots/discoverV1': async (params, session) => {
      const roots = new Fields(params, 'struct CapabilityRootsDiscoverParams').list('roots');
      const request = await Promise.all(
        roots.map((root) => parseRoot(root, session, env['TMPDIR'])),
      );
      if (request.length > MAX_ROOTS)
        throw new RpcError(
          rpcCodes.refused,
          `capability root discovery accepts at most ${MAX_ROOTS} roots`,
        );
      const budget = { bytes: MAX_ANSWER_BYTES };
      const found: unknown[] = [];
      for (const { id, ...root } of request) found.push({ id, ...(await scanRoot(root, budget)) });
      return { roots: found };
    },
  };
}

async function parseRoot(
  root: unknown,
  session: CodexSession,
  tmpdir: string | undefined,
): Promise<RootRequest & { readonly id: string }> {
  const fields = new Fields(root, 'struct WireCapabilityRootDiscoverRequest');
  const [id, uri] = [fields.text('id'), fields.text('path')];
  const access = await accessPolicyOf(session, fields.raw('sandbox'), tmpdir);
  return { id, uri, path: parseOwnUri(uri), options: { access, follow: true } };
}
