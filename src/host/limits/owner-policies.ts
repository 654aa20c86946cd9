// The ceilings of owners, from the tokens in the state folder: so they hold however a start arrives. The file has hashes of
// tokens, no token.

import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { EVERYONE, type Owner } from '../../protocol/host-api.ts';
import type { OwnerPolicy } from '../../protocol/confinement/confinement.ts';
import { confinement } from '../../protocol/confinement/input.ts';
import { strictest } from './ceilings.ts';

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
  private rows: ReadonlyMap<Owner, readonly Row[]> = new Map();
  private seen = '';

  constructor(folder: string, wallMs: () => number) {
    this.file = join(folder, 'tokens.json');
    this.wallMs = wallMs;
  }

  /** Undefined for an owner that never had a token, such as the person who runs the keeper. */
  of(owner: Owner): OwnerPolicy | undefined {
    const rows = this.current();
    if (rows.size === 0) return undefined;
    return strictest(...withParents(owner).flatMap((each) => this.counted(rows.get(each) ?? [])));
  }

  /**
   * The end of a token takes its ceilings from nothing that runs, and a command inside may start more. So the tokens that have
   * ended count for as long as their owner has no other.
   */
  private counted(rows: readonly Row[]): OwnerPolicy[] {
    const valid = rows.filter(
      ({ expiresAtMs }) => expiresAtMs === undefined || expiresAtMs > this.wallMs(),
    );
    return (valid.length > 0 ? valid : rows).map(policyOf);
  }

  private current(): ReadonlyMap<Owner, readonly Row[]> {
    const stats = statSync(this.file, { throwIfNoEntry: false });
    const seen = stats ? `${stats.mtimeMs} ${stats.size} ${stats.ino}` : '';
    if (seen === this.seen) return this.rows;
    // A damaged file makes every token useless, and the ceilings that are known stay.
    this.rows = (stats ? parse(readFileSync(this.file, 'utf8')) : new Map()) ?? this.rows;
    this.seen = seen;
    return this.rows;
  }
}

/** "a/b/c", "a/b", "a" */
function withParents(owner: Owner): Owner[] {
  const parts = owner.split('/');
  return parts.map((_, at) => parts.slice(0, parts.length - at).join('/'));
}

function policyOf({ level, limits, sandbox, enforce }: Row): OwnerPolicy {
  if (level === undefined) return { level: 'hidden', enforce: 'best' };
  return { level, limits, sandbox, enforce };
}

/** Undefined: the file is damaged. */
function parse(text: string): Map<Owner, Row[]> | undefined {
  const rows = new Map<Owner, Row[]>();
  try {
    const listed: unknown = JSON.parse(text);
    if (!Array.isArray(listed)) return undefined;
    for (const each of listed) {
      const parsed = v.safeParse(row, each);
      if (!parsed.success || parsed.output.owner === EVERYONE) continue;
      const { output } = parsed;
      rows.set(output.owner, [...(rows.get(output.owner) ?? []), output]);
    }
    return rows;
  } catch {
    return undefined;
  }
}
