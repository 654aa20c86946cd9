// A connection of a codex client, as the methods that are not about processes see it, and a caller of those methods that
// gives back what would be on the wire.

import { setMaxListeners } from 'node:events';
import type { CodexSession, MethodTable } from '../../src/server/codex/rpc.ts';
import { RpcError } from '../../src/server/codex/rpc.ts';
import { onCleanup } from './hosts.ts';

export interface Note {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

export type Answer = Readonly<Record<string, unknown>>;

export class TestSession implements CodexSession {
  readonly notes: Note[] = [];
  readonly admin: boolean;
  readonly home: string;
  private readonly over = new AbortController();
  private readonly cleanups = new Set<() => void>();
  private waiting: (() => void)[] = [];

  /** With a home: of a scoped token. Ends with the test. */
  constructor(home?: string) {
    this.admin = home === undefined;
    this.home = home ?? '/nonexistent-home';
    // One listener per call under way.
    setMaxListeners(0, this.over.signal);
    onCleanup(() => this.close());
  }

  get gone(): AbortSignal {
    return this.over.signal;
  }

  backpressure(): undefined {
    return undefined;
  }

  policy(): undefined {
    return undefined;
  }

  notify(method: string, params: unknown): void {
    this.notes.push({ method, params: params as Note['params'] });
    for (const wake of this.waiting.splice(0)) wake();
  }

  onClose(cleanup: () => void): () => void {
    this.cleanups.add(cleanup);
    return () => this.cleanups.delete(cleanup);
  }

  close(): void {
    this.over.abort();
    for (const cleanup of this.cleanups) cleanup();
    this.cleanups.clear();
  }

  /** Resolves with the first note that fits, past or to come. */
  async note(fits: (note: Note) => boolean): Promise<Note> {
    for (;;) {
      const found = this.notes.find(fits);
      if (found) return found;
      await new Promise<void>((resolve) => {
        this.waiting.push(resolve);
      });
    }
  }
}

/** Answers with the result, or with `{code, message}`. What is no RpcError is a mistake and thrown. */
export function caller(
  table: MethodTable,
  session: CodexSession,
): (method: string, params?: unknown) => Promise<Answer> {
  return async (method, params) => {
    const call = table[method];
    if (!call) throw new Error(`there is no ${method}`);
    try {
      // As on the wire: nothing but JSON goes in and comes out.
      const sent =
        params === undefined ? undefined : (JSON.parse(JSON.stringify(params)) as unknown);
      return JSON.parse(JSON.stringify(await call(sent, session))) as Answer;
    } catch (error) {
      if (error instanceof RpcError) return { code: error.code, message: error.message };
      throw error;
    }
  };
}
