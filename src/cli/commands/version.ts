// `holdfast version`

import { VERSION } from '../../base/version.ts';
import type { Command } from '../arguments/command.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'version',
  usage: '',
  summary: summaries.version,
  examples: ['holdfast version'],
  options: {},
  read({ words }) {
    words.expect();
    return async () => ({
      result: { version: VERSION, node: process.versions.node },
      lines: [VERSION],
    });
  },
};
