// `holdfast dashboard`

import { spawn } from 'node:child_process';
import type { Answer, Command } from '../arguments/command.ts';
import { dashboardLink } from '../local/dashboard-link.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'dashboard',
  usage: '[ID] [--print]',
  summary: summaries.dashboard,
  examples: ['holdfast dashboard', 'holdfast dashboard --print'],
  takes: 'processes',
  options: {
    print: { type: 'boolean', about: 'only print the link, also on a desktop' },
  },
  notes: [
    'The link works once, within two minutes. Starts the server if none is running.',
    'With --owner the page sees only the processes of that owner.',
    'The page "Host" of the dashboard lists signed-in browsers and signs them out.',
  ],
  read({ words, caller, out }) {
    const [id] = words.expect('[ID]');
    const owner = words.text('owner');
    const only = words.flag('print') || out.json;
    return async (): Promise<Answer> => {
      const place = id === undefined ? '' : placeOf(await caller.find(id));
      const { env, home } = caller;
      const link = await dashboardLink(home, { env, owner, place });
      const opened =
        !only && out.columns !== undefined && hasDesktop(env) && (await open(link.url, env));
      const lines = opened ? ['Opened in your browser. The link, if it did not:'] : [];
      return { result: { ...link, opened }, lines: [...lines, link.url] };
    };
  },
};

function placeOf({ owner, id }: { readonly owner: string; readonly id: string }): string {
  return `/p/${encodeURIComponent(owner)}/${encodeURIComponent(id)}`;
}

function hasDesktop(env: NodeJS.ProcessEnv): boolean {
  return Boolean(env['DISPLAY'] || env['WAYLAND_DISPLAY']);
}

/** False where nothing opens links. */
function open(url: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  return new Promise((resolve) => {
    const opener = spawn('xdg-open', [url], { env, stdio: 'ignore', detached: true });
    opener.once('error', () => resolve(false));
    opener.once('spawn', () => {
      opener.unref();
      resolve(true);
    });
  });
}
