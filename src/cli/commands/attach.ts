// `holdfast attach`

import type { ReadStream } from 'node:tty';
import { randomId } from '../../base/ids.ts';
import { systemClock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { decodeRecords } from '../../protocol/record.ts';
import type { Caller } from '../caller.ts';
import type { Answer, Command } from '../command.ts';
import { outcomeWords } from '../outcome.ts';

export const command: Command = {
  name: 'attach',
  usage: 'ID [--read-only] [--detach-key ^]]',
  summary: 'Sit down at a terminal: its screen here, your keys there.',
  options: {
    'read-only': { type: 'boolean', short: 'r', about: 'only look: nothing is typed or resized' },
    'detach-key': { type: 'string', value: '^]', about: 'the key that leaves it (default Ctrl-])' },
    share: { type: 'boolean', about: 'leave the keyboard to others as well' },
  },
  notes: [
    'While you are there nobody else types into it, unless you share the keyboard. It goes on when you leave.',
  ],
  async run({ words, caller }): Promise<Answer> {
    const [id = ''] = words.exactly(1, 1);
    const { stdin, stdout } = process;
    if (!stdin.isTTY || !stdout.isTTY) throw words.wrong('stdin and stdout must be a terminal');
    const key = keyOf(words.text('detach-key') ?? '^]');
    if (key === undefined) throw words.wrong('--detach-key is "^" and a letter or one of @[\\]^_');
    const target = await caller.find(id);
    if (target.streams !== 'pty')
      throw new HoldfastError('not_a_terminal', `Process ${target.id} runs on pipes.`);
    const seat = new Seat(caller, target, {
      key,
      readOnly: words.flag('read-only'),
      share: words.flag('share'),
    });
    const how = await seat.sit();
    return { result: { id: target.id, ...how }, lines: [how.words] };
  },
};

function keyOf(text: string): number | undefined {
  const [, letter] = /^\^([@-_a-z])$/.exec(text) ?? [];
  return letter === undefined ? undefined : letter.toUpperCase().charCodeAt(0) & 0x1f;
}

interface SeatOptions {
  readonly key: number;
  readonly readOnly: boolean;
  readonly share: boolean;
}

/** The keyboard is taken for so long, and again before that is over: a person who is cut off blocks nobody. */
const HOLD_MS = 10_000;
const RENEW_MS = 3000;
const READ_WAIT_MS = 25_000;
/** What a program may have switched on in the person's own terminal. */
const LEAVE =
  '\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?1l\x1b>\x1b[0m\r\n';

/** One person at one terminal. */
class Seat {
  private readonly caller: Caller;
  private readonly target: ProcessInfo;
  private readonly options: SeatOptions;
  private readonly holder = `attach-${randomId().slice(0, 8)}`;
  private readonly left = new AbortController();

  constructor(caller: Caller, target: ProcessInfo, options: SeatOptions) {
    this.caller = caller;
    this.target = target;
    this.options = options;
  }

  async sit(): Promise<{ detached: boolean; words: string }> {
    const { stdin, stdout } = process;
    const { readOnly, share } = this.options;
    const holds = !readOnly && !share;
    if (holds) await this.hold(HOLD_MS);
    const renew = setInterval(() => void this.hold(HOLD_MS).catch(() => this.leave()), RENEW_MS);
    if (!holds) clearInterval(renew);
    const resized = (): void => void this.resize();
    stdout.on('resize', resized);
    try {
      await this.resize();
      const after = await this.paint();
      stdin.setRawMode(true);
      stdin.on('data', (keys: Buffer) => void this.typed(keys, stdin));
      return await this.follow(after);
    } finally {
      clearInterval(renew);
      stdout.removeListener('resize', resized);
      stdin.setRawMode(false);
      stdin.pause();
      stdin.removeAllListeners('data');
      stdout.write(LEAVE);
      if (holds) await this.hold(0).catch(() => undefined);
    }
  }

  private leave(): void {
    this.left.abort();
  }

  private async hold(forMs: number): Promise<void> {
    const { owner, id } = this.target;
    await (await this.caller.host()).keyboard(owner, { id, holder: this.holder, forMs });
  }

  private async resize(): Promise<void> {
    if (this.options.readOnly) return;
    const { columns: cols, rows } = process.stdout;
    const { owner, id } = this.target;
    await (
      await this.caller.host()
    )
      .resize(owner, { id, size: { cols, rows } })
      .catch(() => undefined);
  }

  /** The screen as it is now; answers the event behind which to go on. */
  private async paint(): Promise<number> {
    const [{ Screens }, { repaint }, { openSession }] = await Promise.all([
      import('../../screen/screens.ts'),
      import('../../screen/repaint.ts'),
      import('../../server/terminals/terminal-session.ts'),
    ]);
    const screens = new Screens({ clock: systemClock });
    const host = await this.caller.host();
    const { owner, id } = this.target;
    const options = { host, screens: () => Promise.resolve(screens), answers: false };
    const session = await openSession(owner, id, options);
    try {
      const shot = await session.snapshot();
      process.stdout.write(`\x1b[2J\x1b[H${repaint(shot)}`);
      return shot.seq;
    } finally {
      await session.close();
      await screens.close();
    }
  }

  private async typed(keys: Buffer, stdin: ReadStream): Promise<void> {
    const at = keys.indexOf(this.options.key);
    const data = at < 0 ? keys : keys.subarray(0, at);
    if (at >= 0) stdin.pause();
    if (data.length > 0 && !this.options.readOnly) {
      const { owner, id } = this.target;
      const host = await this.caller.host();
      // Its end is told by what is read.
      await host.write(owner, { id, data, holder: this.holder }).catch(() => undefined);
    }
    if (at >= 0) this.leave();
  }

  private async follow(from: number): Promise<{ detached: boolean; words: string }> {
    const { owner, id } = this.target;
    const { signal } = this.left;
    for (let after = from; !signal.aborted;) {
      const params = { id, after, waitMs: READ_WAIT_MS };
      const page = await this.caller
        .ask((host) => host.read(owner, params, signal))
        .catch((error: unknown) => {
          if (!signal.aborted) throw error;
        });
      if (!page) break;
      for (const event of decodeRecords(page.records))
        if (event.kind === 'output') process.stdout.write(event.data);
      after = page.nextAfter;
      if (page.end || page.outcome)
        return { detached: false, words: page.outcome ? outcomeWords(page.outcome) : 'ended' };
    }
    return { detached: true, words: `left ${id}, which goes on` };
  }
}
