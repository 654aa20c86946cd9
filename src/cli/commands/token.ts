// `holdfast token`

import { systemClock } from '../../base/clock.ts';
import type { AllMeans, LimitName } from '../../protocol/confinement/confinement.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { EVERYONE } from '../../protocol/host-api.ts';
import { openHome } from '../../keeper/home.ts';
import { chatOwner, parseUuid } from '../../server/coder/chat-scope.ts';
import type { TokenPolicy, Tokens } from '../../server/http/tokens.ts';
import type { Answer, Command } from '../arguments/command.ts';
import { confinementOf, confinementOptions } from '../arguments/confinement.ts';
import type { Words } from '../arguments/words.ts';
import { alignedRows } from '../output/table.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'token',
  usage: 'admin | create --chat ID [--expires 1h] [--e2b] | list | revoke TOKEN_ID | forget OWNER',
  takes: ['admin', 'create', 'list', 'revoke', 'forget'],
  summary: summaries.token,
  examples: [
    'holdfast token admin',
    'holdfast token create --for agent-7 --expires 1h',
    'holdfast token list',
  ],
  options: {
    chat: {
      type: 'string',
      value: 'ID',
      about: 'create: the chat (a UUID) of the token',
    },
    for: { type: 'string', value: 'OWNER', about: 'create: any other owner instead of a chat' },
    e2b: {
      type: 'boolean',
      about: 'admin, create: in the form that clients of E2B accept as E2B_API_KEY',
    },
    expires: {
      type: 'string',
      value: '1h',
      about: 'admin, create: how long it is valid (default: until revoked)',
    },
    sandbox: {
      type: 'string',
      value: 'hidden|workspace|read-only',
      about: 'create: what its processes may touch; workspace: write below this directory',
    },
    unconfined: {
      type: 'boolean',
      about: 'create: do not hide the state directory from its processes',
    },
    ...confinementOptions,
  },
  notes: [
    'The token is printed once, when it is created; only its hash is stored.',
    'Processes of a scoped token cannot reach the state directory, its sockets and the keeper. Limits and sandbox',
    'are ceilings: a start may ask for less. Where this machine cannot hide, or enforce a limit, the token is refused;',
    '--unconfined and --enforce best make it nevertheless, and every answer says what is missing.',
    'The owner of a token that was revoked or has expired keeps its ceilings until it gets another one, or until "forget".',
  ],
  read({ words, caller }) {
    const [verb = '', id] = words.expect('admin, create, list, revoke or forget', '[WHICH]');
    const known = ['admin', 'create', 'list', 'revoke', 'forget'].includes(verb);
    if (!known) throw words.wrong(`"${verb}" is not admin, create, list, revoke or forget`);
    const needed = { revoke: 'TOKEN_ID', forget: 'OWNER' }[verb];
    if (needed !== undefined && id === undefined)
      throw words.wrong(`missing argument ${needed}: "holdfast token list" shows them`);
    if (needed === undefined && id !== undefined) throw words.wrong(`unexpected argument "${id}"`);
    const [chat, other, expiresMs] = [
      words.text('chat'),
      words.text('for'),
      words.durationMs('expires'),
    ];
    const form = words.flag('e2b') ? 'e2b' : undefined;
    const uuid = chat === undefined ? undefined : parseUuid(chat);
    if (chat !== undefined && uuid === undefined)
      throw words.wrong(`--chat "${chat}" is not a UUID`);
    const owner = uuid === undefined ? other : chatOwner(uuid);
    if (verb === 'create' && owner === undefined)
      throw words.wrong('give --chat ID or --for OWNER');
    const policy = policyOf(words, caller.cwd);
    return async (): Promise<Answer> => {
      await caller.refuseInside('manage tokens');
      if (verb === 'create')
        checkPolicy(policy, await (await caller.host()).enforcement(caller.sees, {}));
      const { Tokens } = await import('../../server/http/tokens.ts');
      const tokens = new Tokens(openHome(caller.home).folder, systemClock);
      if (verb === 'admin' || (verb === 'create' && owner !== undefined)) {
        const { token, info } =
          verb === 'admin'
            ? tokens.createAdmin(expiresMs, form)
            : tokens.create(owner ?? '', expiresMs, form, policy);
        return { result: { token, ...info }, lines: [token] };
      }
      if (verb === 'list') {
        const list = tokens.list();
        const rows = list.map(({ id: name, owner, expiresAtMs, level = 'hidden' }) => [
          name,
          owner === EVERYONE ? 'admin' : owner,
          validity(expiresAtMs),
          owner === EVERYONE ? '' : level === 'none' ? 'unconfined' : level,
        ]);
        return {
          result: { tokens: list },
          lines: rows.length === 0 ? ['No tokens.'] : alignedRows(rows, Infinity),
        };
      }
      if (verb === 'forget') return forget(tokens, id ?? '');
      if (!tokens.revoke(id ?? ''))
        throw new HoldfastError('not_found', `There is no token with the id "${id}".`, {
          remedy: '"holdfast token list" shows the ids of all tokens.',
        });
      return { result: { revoked: id }, lines: [`The token ${id} is no longer valid.`] };
    };
  },
};

function validity(expiresAtMs: number | undefined): string {
  if (expiresAtMs === undefined) return 'until revoked';
  const hasEnded = expiresAtMs <= systemClock.wallMs();
  return hasEnded ? 'ended' : `until ${new Date(expiresAtMs).toISOString()}`;
}

function forget(tokens: Tokens, owner: string): Answer {
  if (!tokens.forget(owner))
    throw new HoldfastError('not_found', `No token of "${owner}" has ended.`, {
      remedy: '"holdfast token list" shows all tokens and their owners.',
    });
  return { result: { forgotten: owner }, lines: [`The ceilings of "${owner}" are lifted.`] };
}

function policyOf(words: Words, cwd: string): TokenPolicy {
  const level = words.choice('sandbox', ['hidden', 'workspace', 'read-only']) ?? 'hidden';
  const isUnconfined = words.flag('unconfined');
  if (isUnconfined && words.flag('sandbox'))
    throw words.wrong('--unconfined and --sandbox exclude each other');
  const asked = confinementOf(words, cwd);
  const fs = level === 'workspace' ? { write: [cwd] } : ('read-only' as const);
  return {
    level: isUnconfined ? 'none' : 'hidden',
    ...asked,
    ...(level !== 'hidden' && { sandbox: { fs, ...asked.sandbox } }),
  };
}

/** A token whose processes could read the admin's secrets is made only if the admin says so. */
function checkPolicy({ level, limits = {}, sandbox, enforce }: TokenPolicy, means: AllMeans): void {
  if (level === 'hidden' && sandbox?.user === undefined && means.hidden.by === 'no')
    throw new HoldfastError(
      'sandbox_unenforceable',
      `The state directory cannot be hidden from processes of this token: ${means.hidden.why ?? ''}.`,
      { remedy: 'Use --user NAME if the keeper is root, or --unconfined to make it nevertheless.' },
    );
  if (enforce === 'best') return;
  for (const name of Object.keys(limits) as LimitName[])
    if (means[name].by === 'no' || means[name].by === 'watch')
      throw new HoldfastError(
        'limit_unenforceable',
        `The limit "${name}" cannot be enforced here: ${means[name].why ?? ''}.`,
      );
}
