// `holdfast signal`: the name that the API has for it.

import type { Command } from '../arguments/command.ts';
import { command as kill } from './kill.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  ...kill,
  name: 'signal',
  summary: summaries.signal,
  examples: ['holdfast signal web --signal HUP'],
};
