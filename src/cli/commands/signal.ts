// `holdfast signal`: the name that the API has for it.

import type { Command } from '../arguments/command.ts';
import { command as kill } from './kill.ts';

export const command: Command = {
  ...kill,
  name: 'signal',
  summary: 'Same as "kill".',
};
