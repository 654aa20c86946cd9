// A recorded conversation with codex's own exec-server, held again with ours: each message is sent when what came before
// it in the recording has come, and every answer is compared with the recorded one.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { CodexClient, text, type Notification } from './codex-client.ts';

export interface Entry {
  readonly conn?: string;
  readonly dir?: 'send' | 'send-raw' | 'recv' | 'event';
  readonly msg?: unknown;
  readonly note?: string;
}

interface Message {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: Notification['params'];
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string };
}

export interface ReplayOptions {
  /** What stands for the recording's /sandbox. */
  readonly root: string;
  /** Opens a connection by its name in the recording. */
  readonly open: (conn: string) => Promise<CodexClient>;
  /**
   * What happened beside the conversation: by the request after whose answer it did ("A13"), by the connection and its
   * event ("A close", "A ping"), or by the recording's own note.
   */
  readonly steps?: Readonly<Record<string, (client?: CodexClient) => void | Promise<void>>>;
}

export const transcripts = fileURLToPath(new URL('../transcripts/', import.meta.url));

/** The entries of a recording, with its places and ports replaced. */
export function recording(name: string, replaced: Readonly<Record<string, string>>): Entry[] {
  let content = readFileSync(`${transcripts}${name}`, 'utf8').trim();
  for (const [recorded, ours] of Object.entries(replaced))
    content = content.replaceAll(recorded, ours);
  return content.split('\n').map((line) => JSON.parse(line) as Entry);
}

/** What differs between a recording and ours, by connection and then request or process. */
export async function replayed(
  entries: readonly Entry[],
  options: ReplayOptions,
): Promise<Record<string, unknown>> {
  const replay = new Replay(options);
  for (const entry of entries) await replay.play(entry);
  await replay.finish();
  return Object.fromEntries(replay.found);
}

class Replay {
  /** What differs, by request or process. */
  readonly found = new Map<string, unknown>();
  private readonly options: ReplayOptions;
  private readonly talks = new Map<string, Talk>();
  private readonly sessions = new Map<string, string>();

  constructor(options: ReplayOptions) {
    this.options = options;
  }

  async play({ conn, dir, msg, note }: Entry): Promise<void> {
    if (note !== undefined) await this.step(note);
    if (conn === undefined || dir === undefined) return;
    if (dir === 'event') {
      const { event } = msg as { event: string };
      await this.event(conn, event);
      return this.step(`${conn} ${event}`);
    }
    const talk = this.talks.get(conn);
    if (!talk) throw new Error(`${conn} is not open`);
    if (dir !== 'recv') return this.send(talk, dir === 'send' ? JSON.stringify(msg) : String(msg));
    const recorded = msg as Message;
    talk.expected.push(recorded);
    const key = `${conn}${recorded.id}`;
    if (!this.options.steps?.[key]) return undefined;
    await talk.caughtUp();
    return this.step(key);
  }

  private async step(key: string): Promise<void> {
    await this.options.steps?.[key]?.([...this.talks.values()].at(-1)?.client);
  }

  async finish(): Promise<void> {
    for (const [conn, talk] of this.talks) {
      if (!talk.client.closed) await talk.caughtUp();
      this.compare(conn, talk);
      await talk.client.kill();
    }
  }

  private async event(conn: string, event: string): Promise<void> {
    if (event === 'open') this.talks.set(conn, new Talk(await this.options.open(conn)));
    if (event !== 'close') return;
    const talk = this.talks.get(conn);
    if (!talk) return;
    if (talk.mustDrop) await talk.client.dropped();
    else {
      if (!talk.polling) await talk.caughtUp();
      await talk.client.kill();
      // A whole exchange later, the server has seen that too.
      const probe = await this.options.open(conn);
      await probe.refusal('nope/nope');
      await probe.kill();
    }
  }

  private async send(talk: Talk, text: string): Promise<void> {
    await talk.caughtUp();
    for (const { expected, client } of this.talks.values())
      for (const { id, result } of expected) {
        const recorded = result?.['sessionId'];
        const ours = (answerTo(client, id) as Message | undefined)?.result?.['sessionId'];
        if (typeof recorded === 'string' && typeof ours === 'string')
          this.sessions.set(recorded, ours);
      }
    let sent = text;
    for (const [recorded, ours] of this.sessions) sent = sent.replaceAll(recorded, ours);
    talk.mustDrop = !sent.includes('"id"') && !sent.includes('"initialized"');
    talk.mustDrop ||=
      sent.includes('"result"') || (sent.includes('"initialized"') && talk.expected.length === 0);
    talk.polling = sent.includes('"waitMs":5000');
    talk.client.send(sent);
  }

  private compare(conn: string, { expected, client }: Talk): void {
    const malformed = client.raw
      .filter((text) => text.includes('"id":-1}'))
      .map((text) => JSON.parse(text) as Message);
    for (const recorded of expected) {
      if (recorded.method !== undefined) continue;
      const ours = recorded.id === -1 ? malformed.shift() : answerTo(client, recorded.id);
      this.note(`${conn}${recorded.id}`, this.plain(recorded), this.plain(ours as Message));
    }
    this.compareOthers(conn, expected, client);
    const processes = new Set(expected.flatMap(({ params }) => params?.processId ?? []));
    for (const id of processes) {
      const recorded = expected.filter(
        ({ params }) => params?.processId === id,
      ) as unknown as Notification[];
      this.note(`${conn} ${id.slice(0, 20)}`, this.story(recorded), this.story(client.of(id)));
    }
  }

  /** Bodies by their request; what else is told, word for word. */
  private compareOthers(conn: string, expected: readonly Message[], client: CodexClient): void {
    const told = (messages: readonly unknown[]): Record<string, unknown> => {
      const others = (messages as Other[]).filter(
        ({ method, params }) => method !== undefined && params.processId === undefined,
      );
      const ids = new Set(others.flatMap(({ params }) => params.requestId ?? []));
      const bodies = [...ids].map((id) => [
        id,
        bodyOf(others.map(({ params }) => params).filter(({ requestId }) => requestId === id)),
      ]);
      const rest = others.filter(({ params }) => params.requestId === undefined);
      return { ...(Object.fromEntries(bodies) as Record<string, unknown>), rest };
    };
    this.note(`${conn} others`, told(expected), told(client.notifications));
  }

  private note(key: string, recorded: unknown, ours: unknown): void {
    if (JSON.stringify(recorded) !== JSON.stringify(ours)) this.found.set(key, ours);
  }

  /** Without what must differ: names of sessions, places, and the words of a JSON parser. */
  private plain(message: Message | undefined): unknown {
    if (!message) return 'nothing';
    const { result, error } = message;
    if (error) {
      const problem = error.message
        .replace(/(websocket 127\.0\.0\.1:)\d+: expected ident.*$/, '$1 not JSON')
        .replace(/(websocket 127\.0\.0\.1:)\d+: Unexpected token.*$/, '$1 not JSON')
        .replace(/(websocket 127\.0\.0\.1:)\d+/, '$1')
        .replace(/ at line \d+ column \d+$/, '')
        .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f-]{17}/g, 'UUID');
      return { code: error.code, message: problem };
    }
    if (result && 'sessionId' in result) return Object.keys(result).sort();
    if (result && 'shell' in result) return 'environment';
    if (result && 'codexHomeDir' in result) return withoutPlaces(result);
    if (result && 'modifiedAtMs' in result) return withoutTimes(result);
    if (result && 'bodyBase64' in result) return withoutDate(result);
    return sorted(result);
  }

  /** What a process told: bytes joined per stretch of one stream, with the numbers left to CX7. */
  private story(notifications: readonly Notification[]): unknown {
    const ordered = [...notifications].sort((a, b) => a.params.seq - b.params.seq);
    const output = nameless(text(ordered.map(({ params }) => params)))
      .replaceAll(/\/tmp\/h-codex\/(?:cc\/out166f\/)?/g, `${this.options.root}/`)
      .replace(/HOLDFAST_PROCESS=.*\n/, '');
    const exit = ordered.find(({ method }) => method === 'process/exited');
    return {
      output,
      exitCode: exit?.params.exitCode,
      sandboxDenied: exit?.params.sandboxDenied,
      closed: ordered.at(-1)?.method === 'process/closed',
      dense: ordered.every(
        ({ params }, index) => params.seq === (ordered[0]?.params.seq ?? 1) + index,
      ),
    };
  }
}

class Talk {
  readonly client: CodexClient;
  readonly expected: Message[] = [];
  mustDrop = false;
  /** Its last word was a question whose answer was never recorded. */
  polling = false;

  constructor(client: CodexClient) {
    this.client = client;
  }

  /** Everything recorded so far has come: answers by id, output by its length, ends by being there. */
  caughtUp(): Promise<void> {
    return this.client.until(() => this.expected.every((recorded) => this.came(recorded)));
  }

  private cameOther(method: string, params: Other['params']): boolean {
    const ours = this.client.notifications as readonly unknown[] as readonly Other[];
    return ours.some(
      (each) =>
        each.method === method &&
        (params.requestId === undefined
          ? JSON.stringify(each.params) === JSON.stringify(params)
          : each.params.requestId === params.requestId && each.params.done === params.done),
    );
  }

  private came({ id, method, params }: Message): boolean {
    if (method === undefined || !params) {
      const malformed = this.expected.filter((each) => each.id === -1).length;
      if (id === -1)
        return this.client.raw.filter((text) => text.includes('"id":-1}')).length >= malformed;
      return answerTo(this.client, id) !== undefined;
    }
    if (params.processId === undefined) return this.cameOther(method, params);
    const ours = this.client.of(params.processId);
    const recorded = this.expected.filter((each) => each.params?.processId === params.processId);
    // As often as in the recording: an id may have been used again.
    const came = (kind: string): boolean => {
      const wanted = recorded.filter((each) => each.method === kind).length;
      return ours.filter((each) => each.method === kind).length >= Math.max(1, wanted);
    };
    if (method !== 'process/output') return came(method);
    const closed = came('process/closed');
    const wanted = nameless(text(recorded.flatMap((each) => each.params ?? [])));
    return closed || nameless(this.client.output(params.processId)).length >= wanted.length;
  }
}

interface Other {
  readonly method?: string;
  readonly params: {
    readonly processId?: string;
    readonly requestId?: string;
    readonly deltaBase64?: string;
    readonly done?: boolean;
    readonly error?: string | null;
  };
}

/** Into how many pieces a body is cut is a matter of moments. */
function bodyOf(pieces: readonly Other['params'][]): unknown {
  const bytes = pieces.map(({ deltaBase64 = '' }) => Buffer.from(deltaBase64, 'base64'));
  const last = pieces.at(-1);
  return { body: Buffer.concat(bytes).toString(), done: last?.done, error: last?.error };
}

function withoutPlaces(result: Record<string, unknown>): unknown {
  return { ...sorted(result), codexHomeDir: 'C', userHomeDir: 'U', hostname: 'H' };
}

/** The size of a folder is its filesystem's business. */
function withoutTimes(result: Record<string, unknown>): unknown {
  const { size, isDirectory } = result;
  return { ...sorted(result), createdAtMs: 0, modifiedAtMs: 0, size: isDirectory ? 0 : size };
}

function withoutDate(result: Record<string, unknown>): unknown {
  const headers = result['headers'] as { name: string; value: string }[];
  return {
    ...sorted(result),
    headers: headers.map(({ name, value }) => [name, name === 'date' ? '' : value]),
  };
}

function nameless(output: string): string {
  return output.replace(/\/dev\/pts\/\d+/, '/dev/pts/N');
}

function answerTo(client: CodexClient, id: number | string | undefined): unknown {
  const text = client.raw.find(
    (each) =>
      each.startsWith(`{"id":${JSON.stringify(id)},`) ||
      each.endsWith(`,"id":${JSON.stringify(id)}}`),
  );
  return text === undefined ? undefined : (JSON.parse(text) as unknown);
}

function sorted(value: object = {}): object {
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
