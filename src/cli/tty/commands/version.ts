// `tty version`

import { VERSION } from '../../../base/version.ts';
import { knownCapabilities } from '../capabilities.ts';
import type { TtyAnswer, TtyCommand } from '../command.ts';
import { PEER_RENDERERS } from '../settings.ts';

/** agent-tty's, up to 0.5.0. */
const PROTOCOL_VERSION = '0.1.0';

export const version: TtyCommand = {
  name: 'version',
  usage: '',
  summary: 'Print the version.',
  examples: ['holdfast tty version'],
  options: {},
  async run({ isPeer, options: { env, program } }): Promise<TtyAnswer> {
    const { version: node, platform, arch } = process;
    const result = {
      cliVersion: VERSION,
      protocolVersion: PROTOCOL_VERSION,
      // The names that --renderer takes; one emulator renders for all of them.
      rendererBackends: isPeer ? PEER_RENDERERS : ['xterm-headless'],
      runtime: { node, platform, arch },
      capabilities: knownCapabilities(env['PATH']),
    };
    return { result, lines: [`${program} ${VERSION}`] };
  },
};
