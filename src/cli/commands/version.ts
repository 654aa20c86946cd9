// `holdfast version`

import { VERSION } from '../../base/version.ts';
import type { Command } from '../command.ts';

export const command: Command = {
  name: 'version',
  usage: '',
  summary: 'Print the version.',
  options: {},
  async run({ words }) {
    words.exactly(0, 0);
    return { result: { version: VERSION, node: process.versions.node }, lines: [VERSION] };
  },
};
