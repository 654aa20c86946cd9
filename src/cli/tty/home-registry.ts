// The homes that have had sessions, in one small file of the user's: so that they can be listed and collected together.
// It only helps to find them; missing or damaged, it is empty.

import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';

export interface KnownHome {
  readonly path: string;
  readonly lastSeenAt: string;
}

/** A longer list is of no use. */
const MOST_HOMES = 1000;

export class HomeRegistry {
  private readonly file: string;

  constructor(env: NodeJS.ProcessEnv) {
    const state = env['XDG_STATE_HOME'] ?? '';
    const folder = isAbsolute(state) ? state : join(env['HOME'] ?? homedir(), '.local', 'state');
    this.file = join(folder, 'holdfast', 'homes.json');
  }

  all(): KnownHome[] {
    try {
      const { homes } = JSON.parse(readFileSync(this.file, 'utf8')) as { homes: unknown };
      return Array.isArray(homes) ? homes.filter(isKnownHome) : [];
    } catch {
      return [];
    }
  }

  /** A registry that cannot be written is no reason not to open a session. */
  note(path: string): void {
    const others = this.all().filter((home) => home.path !== path);
    const homes = [...others, { path, lastSeenAt: new Date().toISOString() }];
    try {
      this.write(homes.slice(-MOST_HOMES));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    }
  }

  /** False when it was not there. */
  forget(path: string): boolean {
    const homes = this.all();
    const others = homes.filter((home) => home.path !== path);
    if (others.length < homes.length) this.write(others);
    return others.length < homes.length;
  }

  private write(homes: readonly KnownHome[]): void {
    mkdirSync(dirname(this.file), { recursive: true, mode: 0o700 });
    const fresh = `${this.file}.${process.pid}`;
    writeFileSync(fresh, `${JSON.stringify({ version: 1, homes }, undefined, 2)}\n`, {
      mode: 0o600,
    });
    renameSync(fresh, this.file);
  }
}

function isKnownHome(value: unknown): value is KnownHome {
  const { path, lastSeenAt } = (value ?? {}) as Partial<Record<keyof KnownHome, unknown>>;
  return typeof path === 'string' && isAbsolute(path) && typeof lastSeenAt === 'string';
}
