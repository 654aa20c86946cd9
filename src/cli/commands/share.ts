// `holdfast share`

import type { Answer, Command } from '../arguments/command.ts';
import { shareLink } from '../local/dashboard-link.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'share',
  usage: 'ID [--for 1h]',
  summary: summaries.share,
  examples: ['holdfast share web'],
  takes: 'processes',
  options: {
    for: { type: 'string', value: '1h', about: 'how long the link works (default 1h, at most 7d)' },
  },
  notes: [
    'The page of the link shows this process, live, and nothing else. It cannot type, stop or resize.',
    'The page "Host" of the dashboard lists shared links and ends them.',
  ],
  read({ words, caller }) {
    const [id = ''] = words.expect('ID');
    const forMs = words.durationMs('for');
    return async (): Promise<Answer> => {
      const process = await caller.find(id);
      const link = await shareLink(caller.home, caller.env, process, forMs);
      const until = new Date(link.expiresAtMs).toISOString();
      return { result: link, lines: [link.url, `Works until ${until}.`] };
    };
  },
};
