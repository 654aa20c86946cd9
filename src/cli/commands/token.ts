// `holdfast token`

import { systemClock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { EVERYONE } from '../../protocol/host-api.ts';
import { openHome } from '../../keeper/home.ts';
import { chatOwner, parseUuid } from '../../server/coder/chat-scope.ts';
import type { Answer, Command } from '../arguments/command.ts';
import { alignedRows } from '../output/table.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'token',
  usage: 'admin | create --chat ID [--expires 1h] | list | revoke TOKEN_ID',
  takes: ['admin', 'create', 'list', 'revoke'],
  summary: summaries.token,
  options: {
    chat: {
      type: 'string',
      value: 'ID',
      about: 'create: the chat (a UUID) of the token',
    },
    for: { type: 'string', value: 'OWNER', about: 'create: any other owner instead of a chat' },
    expires: {
      type: 'string',
      value: '1h',
      about: 'admin, create: how long it is valid (default: until revoked)',
    },
  },
  notes: ['The token is printed once, when it is created; only its hash is stored.'],
  read({ words, caller }) {
    const [verb = '', id] = words.expect('admin, create, list or revoke', '[TOKEN_ID]');
    const known = ['admin', 'create', 'list', 'revoke'].includes(verb);
    if (!known) throw words.wrong(`"${verb}" is not admin, create, list or revoke`);
    if (verb === 'revoke' && id === undefined)
      throw words.wrong('missing argument TOKEN_ID: "holdfast token list" shows the ids');
    if (verb !== 'revoke' && id !== undefined) throw words.wrong(`unexpected argument "${id}"`);
    const [chat, other, expiresMs] = [
      words.text('chat'),
      words.text('for'),
      words.durationMs('expires'),
    ];
    const uuid = chat === undefined ? undefined : parseUuid(chat);
    if (chat !== undefined && uuid === undefined)
      throw words.wrong(`--chat "${chat}" is not a UUID`);
    const owner = uuid === undefined ? other : chatOwner(uuid);
    if (verb === 'create' && owner === undefined)
      throw words.wrong('give --chat ID or --for OWNER');
    return async (): Promise<Answer> => {
      await caller.refuseInside('manage tokens');
      const { Tokens } = await import('../../server/http/tokens.ts');
      const tokens = new Tokens(openHome(caller.home).folder, systemClock);
      if (verb === 'admin' || (verb === 'create' && owner !== undefined)) {
        const { token, info } =
          verb === 'admin' ? tokens.createAdmin(expiresMs) : tokens.create(owner ?? '', expiresMs);
        return { result: { token, ...info }, lines: [token] };
      }
      if (verb === 'list') {
        const list = tokens.list();
        const rows = list.map(({ id: name, owner, expiresAtMs }) => [
          name,
          owner === EVERYONE ? 'admin' : owner,
          expiresAtMs === undefined
            ? 'until revoked'
            : `until ${new Date(expiresAtMs).toISOString()}`,
        ]);
        return {
          result: { tokens: list },
          lines: rows.length === 0 ? ['No tokens.'] : alignedRows(rows, Infinity),
        };
      }
      if (!tokens.revoke(id ?? ''))
        throw new HoldfastError('not_found', `There is no token with the id "${id}".`, {
          remedy: '"holdfast token list" shows the ids of all tokens.',
        });
      return { result: { revoked: id }, lines: [`The token ${id} is no longer valid.`] };
    };
  },
};
