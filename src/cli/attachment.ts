// Attaches a person's terminal to a process: its screen here, the keys there, until it ends or the person detaches.

import type { ReadStream } from 'node:tty';
import { randomId } from '../base/ids.ts';
import { systemClock } from '../base/clock.ts';
import type { ProcessInfo } from '../protocol/process.ts';
import { followEvents, type Position } from '../base/follow-events.ts';
import type { Page } from '../protocol/host-api.ts';
import { decodeRecords } from '../protocol/record.ts';
import { isError, type Caller } from './caller.ts';
import { outcomeWords } from './output/outcome.ts';
import { terminalSize } from './output/terminal-size.ts';
import { quote } from './output/terminal-text.ts';

export interface AttachOptions {
  /** The key that detaches. */
  readonly key: number;
  /** Nothing is typed or resized. */
  readonly readOnly: boolean;
  /** Others may type as well. */
  readonly share: boolean;
  /** Take the keyboard from the client that holds it. */
  readonly steal: boolean;
}

/** Ctrl-]. */
const LEAVING_KEY = 0x1d;

export function attachTo(
  caller: Caller,
  target: ProcessInfo,
  options: Partial<AttachOptions> = {},
): Promise<{ detached: boolean; words: string }> {
  const usual = { key: LEAVING_KEY, readOnly: false, share: false, steal: false };
  return new Attachment(caller, target, { ...usual, ...options }).run();
}

/** The keyboard is held for this long and renewed before: a client that is cut off does not block others. */
const HOLD_MS = 10_000;
const RENEW_MS = 3000;
const READ_WAIT_MS = 25_000;
/** Resets what a program may have switched on in the person's terminal. */
const LEAVE =
  '\x1b[?1049l\x1b[?25h\x1b[0 q\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?1l\x1b>\x1b[0m\r\n';

class Attachment {
  private readonly caller: Caller;
  private readonly target: ProcessInfo;
  private readonly options: AttachOptions;
  private readonly holder = `attach-${randomId().slice(0, 8)}`;
  private readonly left = new AbortController();
  /** Another client has taken the keyboard. */
  private ousted = false;

  constructor(caller: Caller, target: ProcessInfo, options: AttachOptions) {
    this.caller = caller;
    this.target = target;
    this.options = options;
  }

  async run(): Promise<{ detached: boolean; words: string }> {
    const { stdin, stdout } = process;
    const { readOnly, share, steal } = this.options;
    const holds = !readOnly && !share;
    if (holds) await this.hold(HOLD_MS, steal);
    this.tellHowToLeave();
    const again = (error: unknown): void => this.refused(error);
    const renew = setInterval(() => void this.hold(HOLD_MS).catch(again), RENEW_MS);
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

  /** The keyboard cannot be held any longer. */
  private refused(error: unknown): void {
    this.ousted ||= isError(error, 'keyboard_held');
    this.leave();
  }

  private async hold(forMs: number, steal = false): Promise<void> {
    const { owner, id } = this.target;
    const params = { id, holder: this.holder, forMs, ...(steal && { steal }) };
    await (await this.caller.host()).keyboard(owner, params);
  }

  /** One line; then the person's screen scrolls up, so that its content is not lost. */
  private tellHowToLeave(): void {
    const { key, readOnly } = this.options;
    const { id, name } = this.target;
    const looks = readOnly ? ' Read-only.' : '';
    const words = `holdfast: Ctrl-${String.fromCharCode(key | 0x40)} detaches from ${quote(name ?? id)}, which keeps running.${looks}`;
    process.stdout.write(
      `\x1b[2m${words}\x1b[0m${'\r\n'.repeat(terminalSize(process.stdout).rows)}`,
    );
  }

  private async resize(): Promise<void> {
    if (this.options.readOnly) return;
    const size = terminalSize(process.stdout);
    const { owner, id } = this.target;
    await (await this.caller.host()).resize(owner, { id, size }).catch(() => undefined);
  }

  /** Paints the current screen; returns the event after which to continue. */
  private async paint(): Promise<number> {
    const [{ Screens }, { repaint }, { openSession }] = await Promise.all([
      import('../screen/view/screens.ts'),
      import('../screen/view/repaint.ts'),
      import('../terminals/terminal-session.ts'),
    ]);
    const screens = new Screens({ clock: systemClock });
    const host = await this.caller.host();
    const { owner, id } = this.target;
    const options = { host, screens: () => Promise.resolve(screens), answers: false };
    const session = await openSession(owner, id, options);
    try {
      const shot = await session.snapshot({ behind: true });
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
      // The end of the process is seen in `follow`.
      await host.write(owner, { id, data, holder: this.holder }).catch((error: unknown) => {
        if (isError(error, 'keyboard_held')) this.refused(error);
      });
    }
    if (at >= 0) this.leave();
  }

  private async follow(from: number): Promise<{ detached: boolean; words: string }> {
    const { owner, id } = this.target;
    const { signal } = this.left;
    const read = (position: Position): Promise<Page> => {
      const params = { id, ...position, waitMs: READ_WAIT_MS };
      return this.caller.ask((host) => host.read(owner, params, signal));
    };
    try {
      for await (const page of followEvents(read, { after: from })) {
        for (const event of decodeRecords(page.records))
          if (event.kind === 'output') process.stdout.write(event.data);
        if (page.end || page.outcome)
          return { detached: false, words: page.outcome ? outcomeWords(page.outcome) : 'ended' };
        if (signal.aborted) break;
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    const why = this.ousted
      ? ': someone else took the keyboard. "attach --steal" takes it back'
      : '';
    return { detached: true, words: `detached from ${id}, which keeps running${why}` };
  }
}
