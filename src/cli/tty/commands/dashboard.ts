// `tty dashboard`: the address of a page in a browser, in place of agent-tty's page in the terminal.

import type { TtyAnswer, TtyCommand } from '../command.ts';

export const dashboard: TtyCommand = {
  name: 'dashboard',
  usage: '',
  summary: 'Print the address of the web page that shows the terminals.',
  examples: ['holdfast tty dashboard'],
  options: {},
  async run(call): Promise<TtyAnswer> {
    call.expect();
    const { dashboardLink } = await import('../../local/dashboard-link.ts');
    const { env, home } = call.caller;
    const link = await dashboardLink(home, { env });
    return { result: link, lines: [link.url] };
  },
};
