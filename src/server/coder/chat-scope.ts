// The chat of a coder request: parsed from two headers by coder's own rules, and checked against the token.

import type { IncomingHttpHeaders } from 'node:http';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Owner } from '../../protocol/host-api.ts';
import type { Caller } from '../http/gate.ts';

export interface Chat {
  readonly id: string;
  readonly ancestors: readonly string[];
}

/** The owner that a coder request acts as. */
export interface ChatScope {
  /** Absent if the request belongs to no chat. */
  readonly chat?: Chat;
  /** Owns the processes that the request starts. */
  readonly owner: Owner;
  /** The admin token also reaches processes of other owners, as with coder's own server. */
  readonly compat: boolean;
}

/** Owns processes that were started without a chat. */
export const NO_CHAT: Owner = 'no-chat';

const CHAT_OWNER = 'chat:';
const NIL = '00000000-0000-0000-0000-000000000000';

export function chatOwner(id: string): Owner {
  return CHAT_OWNER + id;
}

/** The chat of an owner, if the owner is one. */
export function chatOfOwner(owner: Owner): string | undefined {
  return owner.startsWith(CHAT_OWNER) ? owner.slice(CHAT_OWNER.length) : undefined;
}

export function chatScope(headers: IncomingHttpHeaders, caller: Caller): ChatScope {
  const chat = chatOf(headers);
  if (caller.admin)
    return { ...(chat && { chat }), owner: chat ? chatOwner(chat.id) : NO_CHAT, compat: true };
  // A scoped token belongs to one chat, and the header must name it.
  if (!chat) throw new HoldfastError('forbidden', 'This token needs a valid Coder-Chat-Id header.');
  if (chatOwner(chat.id) !== caller.owner)
    throw new HoldfastError('forbidden', 'This token is for another chat.');
  return { chat, owner: caller.owner, compat: false };
}

/** A missing, malformed or nil id means that the request belongs to no chat. */
export function chatOf(headers: IncomingHttpHeaders): Chat | undefined {
  const given = headers['coder-chat-id'];
  const id = given === undefined ? undefined : parseUuid(single(given));
  if (id === undefined || id === NIL) return undefined;
  return { id, ancestors: parseAncestors(single(headers['coder-ancestor-chat-ids'])) };
}

function single(value: string | string[] | undefined): string {
  return (Array.isArray(value) ? value[0] : value) ?? '';
}

/** A JSON array of ids. Invalid entries are skipped; anything but an array is empty. */
function parseAncestors(text: string): string[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return [];
  }
  if (!Array.isArray(parsed)) return [];
  return parsed.flatMap((item) => (typeof item === 'string' ? (parseUuid(item) ?? []) : []));
}

/** Plain, with "urn:uuid:", in braces, or 32 digits without dashes; returned in canonical lower case. */
export function parseUuid(text: string): string | undefined {
  const match =
    /^(?:urn:uuid:)?([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})$/i.exec(
      text,
    ) ??
    /^\{([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})\}$/i.exec(text) ??
    /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/i.exec(text);
  return match?.slice(1).join('-').toLowerCase();
}
