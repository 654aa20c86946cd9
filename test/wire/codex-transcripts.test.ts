// Conversations with codex's own exec-server 0.166.0, recorded, and held again with ours: each message is sent when what
// came before it in the recording has come, and every answer has to be the recorded one. Where ours differs it is said
// here, and argued in docs/wire/codex.md.

import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { serve, type Served } from '../support/coder-client.ts';
import { CodexClient, text, type Notification } from '../support/codex-client.ts';
import { temporaryFolder } from '../support/hosts.ts';

const folder = fileURLToPath(new URL('../transcripts/', import.meta.url));

interface Entry {
  readonly conn?: string;
  readonly dir?: 'send' | 'send-raw' | 'recv' | 'event';
  readonly msg?: never;
}

interface Message {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: Notification['params'];
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string };
}

/** Ended by TERM, where the peer kills at once. */
const terminated = expect.objectContaining({ exitCode: 143, closed: true, dense: true }) as unknown;
const stdinClosed = { status: 'stdinClosed' };
const inherits = (present: readonly string[], absent: readonly string[]): unknown =>
  expect.objectContaining({
    exitCode: 0,
    output: expect.stringMatching(
      new RegExp(
        `^${absent.map((name) => `(?![^]*^${name}=)`).join('')}${present.map((name) => `(?=[^]*^${name}=)`).join('')}`,
        'm',
      ),
    ) as unknown,
  }) as unknown;

/** By recording and then request or process: what ours answers instead. */
const differences: Readonly<Record<string, unknown>> = {
  '03 A live': terminated,
  '04 A quiet': terminated,
  // Not held up by the poll, the terminate that was sent behind it ends it.
  '04 A28': expect.objectContaining({ exited: true, exitCode: 143 }),
  '05 A w': terminated,
  '05 A13': stdinClosed,
  '05 A17': stdinClosed,
  '05 A18': stdinClosed,
  // A method of ours, and the process has ended.
  '06 A8': { code: -32600, message: 'process d has ended' },
  // Any signal can be sent by its name.
  '07 A7': {},
  // It got the time to say something.
  '07 A t': expect.objectContaining({
    output: expect.stringMatching(/^ready\n[^]*term\n$/) as unknown,
    exitCode: 8,
  }),
  '07 A11': expect.objectContaining({ exitCode: 8, closed: true }),
  '07 A g': terminated,
  // Each machine has its own variables.
  '11 A e2': inherits(['PATH', 'PLAIN'], ['API_KEY', 'SECRET_TOKEN']),
  '11 A e3': inherits(['PATH', 'PLAIN', 'API_KEY', 'SECRET_TOKEN'], []),
  '11 A e4': inherits(['PATH', 'HOME'], ['PLAIN', 'API_KEY']),
  '11 A e6': inherits(['PATH', 'HOME'], ['PLAIN', 'LANG']),
  '15 A q': terminated,
  '15 A3': expect.objectContaining({ exited: true, exitCode: 143 }),
};

/** A matter of moments: exit and close mostly come together with us, and then one read tells of both. */
const mayDiffer: Readonly<Record<string, unknown>> = {
  '04 A10': expect.objectContaining({ chunks: [], exited: true, exitCode: 0 }),
  '04 A25': expect.objectContaining({ exited: true, exitCode: 4 }),
  // Resumed without the recording's pause: less was missed, and more is told.
  '08 B3': expect.objectContaining({ exited: false, closed: false }),
  '08 B p': {
    output: expect.stringMatching(/tick11\ntick12\n$/) as unknown,
    exitCode: 0,
    sandboxDenied: false,
    closed: true,
    dense: true,
  },
};

let served: Served;
beforeAll(async () => {
  served = await serve({
    env: { ...process.env, SECRET_TOKEN: 's', API_KEY: 'k', PLAIN: 'p' },
  });
});
afterAll(() => served.stop());

const recordings = readdirSync(folder).filter((name) => name.endsWith('.jsonl'));

for (const name of recordings)
  it(`[CX21] ${name}`, async () => {
    const workspace = temporaryFolder();
    mkdirSync(join(workspace, 'a b'));
    const entries = readFileSync(join(folder, name), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line.replaceAll('/sandbox/ws', workspace)) as Entry);
    const replay = new Replay(
      `ws://127.0.0.1:${served.port}/codex?token=${served.token}`,
      workspace,
    );
    for (const entry of entries) await replay.play(entry);
    await replay.finish();
    const found = Object.fromEntries(
      [...replay.found].map(([key, value]) => [`${name.slice(6, 8)} ${key}`, value]),
    );
    const number = name.slice(6, 8);
    const of = (table: Readonly<Record<string, unknown>>): [string, unknown][] =>
      Object.entries(table).filter(([key]) => key.startsWith(number));
    const timing = of(mayDiffer).filter(([key]) => key in found);
    expect(found).toEqual(Object.fromEntries([...of(differences), ...timing]));
  }, 60_000);

class Replay {
  /** What differs, by request or process. */
  readonly found = new Map<string, unknown>();
  private readonly url: string;
  private readonly workspace: string;
  private readonly talks = new Map<string, Talk>();
  private readonly sessions = new Map<string, string>();

  constructor(url: string, workspace: string) {
    this.url = url;
    this.workspace = workspace;
  }

  async play({ conn, dir, msg }: Entry): Promise<void> {
    if (conn === undefined || dir === undefined) return;
    if (dir === 'event') await this.event(conn, msg as unknown as { event: string });
    else {
      const talk = this.talks.get(conn);
      if (!talk) throw new Error(`${conn} is not open`);
      if (dir === 'recv') talk.expected.push(msg as unknown as Message);
      else await this.send(talk, dir === 'send' ? JSON.stringify(msg) : String(msg));
    }
  }

  async finish(): Promise<void> {
    for (const [conn, talk] of this.talks) {
      if (!talk.client.closed) await talk.caughtUp();
      this.compare(conn, talk);
      await talk.client.kill();
    }
  }

  private async event(conn: string, { event }: { event: string }): Promise<void> {
    if (event === 'open') this.talks.set(conn, new Talk(await CodexClient.connect(this.url)));
    if (event !== 'close') return;
    const talk = this.talks.get(conn);
    if (!talk) return;
    if (talk.mustDrop) await talk.client.dropped();
    else {
      if (!talk.polling) await talk.caughtUp();
      await talk.client.kill();
      // A whole exchange later, the server has seen that too.
      const probe = await CodexClient.connect(this.url);
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
    const processes = new Set(expected.flatMap(({ params }) => (params ? [params.processId] : [])));
    for (const id of processes) {
      const recorded = expected.filter(
        ({ params }) => params?.processId === id,
      ) as unknown as Notification[];
      this.note(`${conn} ${id.slice(0, 20)}`, this.story(recorded), this.story(client.of(id)));
    }
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
    return sorted(result);
  }

  /** What a process told: bytes joined per stretch of one stream, with the numbers left to CX7. */
  private story(notifications: readonly Notification[]): unknown {
    const ordered = [...notifications].sort((a, b) => a.params.seq - b.params.seq);
    const output = nameless(text(ordered.map(({ params }) => params)))
      .replaceAll('/tmp/h-codex/ws', this.workspace)
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

  private came({ id, method, params }: Message): boolean {
    if (method === undefined || !params) {
      const malformed = this.expected.filter((each) => each.id === -1).length;
      if (id === -1)
        return this.client.raw.filter((text) => text.includes('"id":-1}')).length >= malformed;
      return answerTo(this.client, id) !== undefined;
    }
    const ours = this.client.of(params.processId);
    if (method !== 'process/output') return ours.some((each) => each.method === method);
    const recorded = this.expected.filter((each) => each.params?.processId === params.processId);
    const closed = ours.some((each) => each.method === 'process/closed');
    const wanted = nameless(text(recorded.flatMap((each) => each.params ?? [])));
    return closed || nameless(this.client.output(params.processId)).length >= wanted.length;
  }
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

function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
