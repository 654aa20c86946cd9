// Conversations with codex's own exec-server 0.166.0, recorded, and held again with ours: each message is sent when what
// came before it in the recording has come, and every answer has to be the recorded one. Where ours differs it is said
// here, and argued in docs/wire/codex.md.

import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { serve, type Served } from '../support/coder-client.ts';
import { CodexClient } from '../support/codex-client.ts';
import { recording, replayed, transcripts } from '../support/codex-replay.ts';
import { temporaryFolder } from '../support/hosts.ts';

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
    output: expect.stringMatching(/^ready\n[^]*term\n/) as unknown,
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
  // A line every 200 ms: on a busy machine a read finds more of them. All of them together are compared as "04 A r".
  ...Object.fromEntries(
    [4, 5, 6, 7, 8, 9].map((id) => [
      `04 A${id}`,
      expect.objectContaining({ failure: null, sandboxDenied: false }) as unknown,
    ]),
  ),
  '04 A10': expect.objectContaining({ chunks: [], exited: true, exitCode: 0 }),
  '04 A25': expect.objectContaining({ exited: true, exitCode: 4 }),
  // Through a gateway the connection has no address.
  '01 A-1': {
    code: -32600,
    message: expect.stringMatching(
      /websocket unix:0: duplicate JSON object key `method`$/,
    ) as unknown,
  },
  // Resumed without the recording's pause: less was missed, and more is notified.
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

/** Of processes and sessions; the others need surroundings of their own: codex-recordings.test.ts. */
const recordings = readdirSync(transcripts).filter((name) => /^codex-(0[1-8]|11|15)-/.test(name));

for (const name of recordings)
  it(`[CX21] ${name}`, async () => {
    const root = temporaryFolder();
    mkdirSync(join(root, 'ws/a b'), { recursive: true });
    const url = `ws://127.0.0.1:${served.port}/codex?token=${served.token}`;
    const number = name.slice(6, 8);
    const differing = await replayed(recording(name, { '/sandbox': root }), {
      root,
      open: () => CodexClient.connect(url),
    });
    const found = Object.fromEntries(
      Object.entries(differing).map(([key, value]) => [`${number} ${key}`, value]),
    );
    const of = (table: Readonly<Record<string, unknown>>): [string, unknown][] =>
      Object.entries(table).filter(([key]) => key.startsWith(number));
    const timing = of(mayDiffer).filter(([key]) => key in found);
    expect(found).toEqual(Object.fromEntries([...of(differences), ...timing]));
  }, 60_000);
