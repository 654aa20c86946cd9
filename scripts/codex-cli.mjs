// The published codex command line: the path of its program.
import { installedPeer } from './peer.mjs';

export const CODEX_VERSION = '0.169.0';

export function codexCli() {
  const given = process.env.CODEX_CLI;
  if (given) return given;
  const peer = { name: '@openai/codex', version: CODEX_VERSION, bin: 'codex' };
  const program = installedPeer(peer);
  if (program !== undefined) return program;
  process.stderr.write(`holdfast: ${peer.name} ${CODEX_VERSION} could not be installed\n`);
  return process.exit(1);
}
