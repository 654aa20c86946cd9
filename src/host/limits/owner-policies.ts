// The ceilings of owners, from the tokens in the state folder: so they hold however a start arrives. The file has hashes of
// tokens, no token.

import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { EVERYONE, type Owner } from '../../protocol/host-api.ts';
import { confinement } from '../../protocol/confinement/input.ts';
import { strictest, type OwnerPolicy } from './ceilings.ts';

const row = v.object({
  owner: v.string(),
  expiresAtMs: v.optional(v.number()),
  /** Absent in tokens of earlier versions: these are hidden where that is possible. */
  level: v.optional(v.picklist(['hidden', 'none'])),
  ...confinement,
});
type Row = v.InferOutput<typeof row>;

export class OwnerPolicies {
  private readonly file: string;
  private readonly wallMs: () => number;
  private rows: readonly Row[] = [];
  private seen = '';

  constructor(folder: string, wallMs: () => number) {
    this.file = join(folder, 'tokens.json');
    this.wallMs = wallMs;
  }

  /** Undefined for an owner without a token, such as the person who runs the keeper. */
  of(owner: Owner): OwnerPolicy | undefined {
    const rows = this.current().filter(
      (each) =>
        each.owner !== EVERYONE &&
        (owner === each.owner || owner.startsWith(`${each.owner}/`)) &&
        (each.expiresAtMs === undefined || each.expiresAtMs > this.wallMs()),
    );
    return strictest(rows.map(policyOf));
  }

  private current(): readonly Row[] {
    const stats = statSync(this.file, { throwIfNoEntry: false });
    const seen = stats ? `${stats.mtimeMs} ${stats.size} ${stats.ino}` : '';
    if (seen === this.seen) return this.rows;
    // A damaged file makes every token useless, so it needs no ceilings.
    this.rows = stats ? parse(readFileSync(this.file, 'utf8')) : [];
    this.seen = seen;
    return this.rows;
  }
}

function policyOf({ level, limits, sandbox, enforce }: Row): OwnerPolicy {
  if (level === undefined) return { level: 'hidden', enforce: 'best' };
  return { level, limits, sandbox, enforce };
}

function parse(text: string): Row[] {
  try {
    const rows: unknown = JSON.parse(text);
    if (!Array.isArray(rows)) return [];
    return rows.flatMap((each) => {
      const parsed = v.safeParse(row, each);
      return parsed.success ? [parsed.output] : [];
    });
  } catch {
    return [];
  }
}
