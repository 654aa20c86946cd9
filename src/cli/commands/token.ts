// `holdfast token`

import { systemClock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { openHome } from '../../keeper/home.ts';
import type { Answer, Command } from '../command.ts';
import { alignedRows } from '../table.ts';

export const command: Command = {
  name: 'token',
  usage: 'create --chat ID [--expires 1h] | list | revoke TOKEN_ID',
  summary: 'Make, list and revoke tokens that are bound to one chat or owner.',
  options: {
    chat: {
      type: 'string',
      value: 'ID',
      about: 'create: the chat (a UUID) that the token speaks for',
    },
    for: { type: 'string', value: 'OWNER', about: 'create: any other owner instead of a chat' },
    expires: {
      type: 'string',
      value: '1h',
      about: 'create: how long it is valid (default: until revoked)',
    },
  },
  notes: ['The token is printed once, when it is made; only a sum of it is kept.'],
  async run({ words, caller }): Promise<Answer> {
    const [verb = '', id] = words.exactly(1, 2);
    const { Tokens } = await import('../../server/tokens.ts');
    const tokens = new Tokens(openHome(caller.home).folder, systemClock);
    if (verb === 'create' && id === undefined) {
      const { chatOwner, parseUuid } = await import('../../server/chat.ts');
      const chat = words.text('chat');
      const uuid = chat === undefined ? undefined : parseUuid(chat);
      if (chat !== undefined && uuid === undefined)
        throw words.wrong(`--chat "${chat}" is not a UUID`);
      const owner = uuid === undefined ? words.text('for') : chatOwner(uuid);
      if (owner === undefined) throw words.wrong('say for whom: --chat ID or --for OWNER');
      const { token, info } = tokens.create(owner, words.durationMs('expires'));
      return { result: { token, ...info }, lines: [token] };
    }
    if (verb === 'list' && id === undefined) {
      const list = tokens.list();
      const rows = list.map(({ id: name, owner, expiresAtMs }) => [
        name,
        owner,
        expiresAtMs === undefined
          ? 'until revoked'
          : `until ${new Date(expiresAtMs).toISOString()}`,
      ]);
      return {
        result: { tokens: list },
        lines: rows.length === 0 ? ['No scoped tokens.'] : alignedRows(rows, Infinity),
      };
    }
    if (verb === 'revoke' && id !== undefined) {
      if (!tokens.revoke(id))
        throw new HoldfastError('not_found', `There is no token with the id "${id}".`);
      return { result: { revoked: id }, lines: [`The token ${id} is no longer valid.`] };
    }
    throw words.wrong('use create, list or revoke');
  },
};
