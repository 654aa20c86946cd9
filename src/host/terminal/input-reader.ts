// Who reads the input of a terminal now, and whether a command can be typed there: for shells that make no marks, or no
// longer do.

import { basename } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { identityOf, type Foreground, type Language } from './foreground.ts';

export interface ReaderTools {
  readonly clock: Clock;
  readonly foreground: () => Foreground;
  /** No program has read all typed input yet. */
  readonly unread: () => boolean;
  /** We have not read all output yet. */
  readonly unheard: () => boolean;
  /** A program asks for a password. */
  readonly secret: () => boolean;
  /** The terminal is not in canonical mode. */
  readonly edits: () => boolean;
  /** The program that the terminal was opened with. */
  readonly root: number;
  /** Its arguments. */
  readonly argv: readonly string[];
}

export interface Reading {
  readonly who: Foreground;
  /** Undefined if it is neither a shell nor leads to one. */
  readonly identity: string | undefined;
  readonly name: string;
  readonly language: Language | undefined;
  /** It has read all input and sleeps, and we have read all of its earlier output. */
  readonly rests: boolean;
  /** It waits for a command, as far as we can see. */
  readonly free: boolean;
  /** It is free because it edits its line. */
  readonly edits: boolean;
  /** It is another shell than the one that makes marks. */
  readonly away: boolean;
  /** No shell is expected. */
  readonly isProgram: boolean;
}

/** A shell that never edits lines counts as waiting after this long without output. */
const PLAIN_QUIET_MS = 300;
/** If shells of this name edit lines, one that does not is probably still reading its files. */
const EDITOR_QUIET_MS = 3000;
const EDITORS = /^(?:r?bash|r?zsh|fish|tcsh)$/;
/** A shell with one command is assumed to stay with what it runs after this long. */
const STAYS_MS = 500;

export class Reader {
  private readonly tools: ReaderTools;
  /** The shell that makes marks: the root, as long as it is the program that was started. */
  private home: string;
  private seenHome = false;
  /** A shell that edits its lines: while it does not, a command runs. */
  private editor: string | undefined;
  /** A shell that reads lines in canonical mode. */
  private plain: string | undefined;
  private last: string | undefined;
  private ran: { readonly pid: number | undefined; readonly sinceUs: number } | undefined;
  quietSinceUs = 0;

  constructor(tools: ReaderTools) {
    this.tools = tools;
    this.home = identityOf(tools.root, tools.argv);
    this.heard();
  }

  /**
   * The shell drew a prompt with marks. If its file is a script that leads to the shell, it has the given name and
   * arguments behind another path. Another shell may already be there by exec, because typed input is read at once.
   */
  markedPrompt(): void {
    if (this.seenHome) return;
    const { root, argv } = this.tools;
    const { who } = this.now();
    if (who.kind !== 'shell' || who.pid !== root || who.name !== basename(argv[0] ?? '')) return;
    const [, , ...words] = who.identity.split('\0');
    if (identityOf(root, words) === identityOf(root, argv.slice(1))) this.home = who.identity;
  }

  /** The terminal printed something. */
  heard(): void {
    this.quietSinceUs = this.tools.clock.nowUs();
  }

  now(): Reading {
    // In this order: a shell that sleeps with an empty input has printed everything about what it read.
    const unread = this.tools.unread();
    const who = this.tools.foreground();
    const sleeps = who.kind === 'shell' ? who.sleeps : who.kind !== 'other' && who.kind !== 'soon';
    const rests = !unread && sleeps && !this.tools.unheard();
    const identity =
      who.kind === 'shell' ? who.identity : who.kind === 'remote' ? `${who.pid}` : undefined;
    if (identity !== this.last) {
      this.last = identity;
      this.heard();
    }
    this.seenHome ||= identity === this.home;
    const free = rests && identity !== undefined && this.isFree(who, identity);
    return {
      who,
      identity,
      name: who.kind === 'unseen' ? '' : who.name,
      language: who.kind === 'shell' ? who.language : who.kind === 'remote' ? 'posix' : undefined,
      rests,
      free,
      edits: free && who.kind === 'shell' && !who.behind && this.editor === identity,
      away: identity !== undefined && identity !== this.home,
      isProgram: who.kind === 'other' || (who.kind === 'soon' && this.stays(who.runs)),
    };
  }

  private stays(runs: number | undefined): boolean {
    const nowUs = this.tools.clock.nowUs();
    if (runs === undefined || this.ran?.pid !== runs) this.ran = { pid: runs, sinceUs: nowUs };
    return runs !== undefined && nowUs - this.ran.sinceUs >= STAYS_MS * 1000;
  }

  private isFree(who: Foreground, identity: string): boolean {
    if (who.kind === 'remote') return !this.tools.secret();
    // We cannot see its own terminal, only that it is in the foreground there.
    if (who.kind === 'shell' && who.behind) return true;
    if (this.tools.edits()) {
      this.editor = identity;
      if (this.plain === identity) this.plain = undefined;
      return true;
    }
    if (this.editor === identity) return false;
    if (this.plain === identity) return true;
    const quietMs = (this.tools.clock.nowUs() - this.quietSinceUs) / 1000;
    const edits = who.kind === 'shell' && EDITORS.test(who.name);
    if (quietMs < (edits ? EDITOR_QUIET_MS : PLAIN_QUIET_MS)) return false;
    this.plain = identity;
    return true;
  }
}
