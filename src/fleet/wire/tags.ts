// The tag of a host: the first letters of ids that gateways make for it. It follows from the name, which NATS checks, so that no
// host can take the ids of another.

import { createHash } from 'node:crypto';
import { idLetters, randomId } from '../../base/ids.ts';

const TAG_LETTERS = 7;
const MADE_ID = /^[0-9a-z]{26}$/;

/** 35 bits. */
export function tagOf(host: string): string {
  return idLetters(createHash('sha256').update(`tag of ${host}`).digest().subarray(0, TAG_LETTERS));
}

/** 95 random bits behind the tag. */
export function newIdAt(host: string): string {
  return tagOf(host) + randomId().slice(TAG_LETTERS);
}

/** Undefined for an id that nobody made for a host. */
export function tagIn(id: string): string | undefined {
  return MADE_ID.test(id) ? id.slice(0, TAG_LETTERS) : undefined;
}
