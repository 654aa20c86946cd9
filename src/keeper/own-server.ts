// The server that the keeper starts itself: for a program inside one of its processes that needs one, because a server that
// such a program started could speak for one owner only; for `holdfast up`, where the keeper starts it again when it dies; and
// for a member of a fleet, whose dead server no gateway could reach.

import { fileURLToPath } from 'node:url';
import { builtFile } from '../base/workers/built-file.ts';
import type { Clock } from '../base/clock.ts';
import { ENGINE_FLAGS } from '../base/engine-flags.ts';
import { HoldfastError, toErrorShape, type ErrorShape } from '../protocol/errors.ts';
import type { Child, ExitStatus } from '../host/child/child.ts';
import type { LaunchPlan } from '../protocol/process.ts';

/** What a server says when it serves. */
export type Ready = Readonly<Record<string, unknown>>;

export interface OwnServerOptions {
  /** Starts a program that belongs to no process of the host. */
  readonly start: (plan: LaunchPlan) => Promise<Child>;
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly clock: Clock;
  readonly report: (message: string) => void;
  /** Whether the home needs a server, also one that the keeper did not start. */
  readonly isMember: () => boolean;
  /** Whether the last server of the home died: one that was ended stays ended. */
  readonly hasDied: () => boolean;
}

/** A server that dies again and again is started again after a pause that doubles between these two. */
const [SHORTEST_PAUSE_MS, LONGEST_PAUSE_MS] = [100, 30_000];
/** A supervisor of the machine, such as systemd, starts the server of a member first. */
const REVIVE_MS = 2000;
/** A server that has lived this long did not fail by its start. */
const LIVED_MS = 60_000;
/** After this a server that got SIGTERM is killed: it holds nothing that must survive. */
const LEAVE_MS = 3000;

export class OwnServer {
  private readonly options: OwnServerOptions;
  private pid: number | undefined;
  private exited: Promise<void> = Promise.resolve();
  private starting: Promise<Ready> | undefined;
  /** The options of the server that is started again when it dies. */
  private supervised: readonly string[] | undefined;
  private pauseMs = SHORTEST_PAUSE_MS;
  private cancelPause: (() => void) | undefined;
  private ended = false;

  constructor(options: OwnServerOptions) {
    this.options = options;
  }

  /** Itself, and nothing that it starts. */
  is(pid: number): boolean {
    return pid === this.pid;
  }

  /** It is started again when it dies. */
  get isSupervised(): boolean {
    return this.supervised !== undefined;
  }

  /** Answers with what it says when it serves. Takes the options of a server that died here, and none from the caller. */
  start(): Promise<Ready> {
    return this.launch(this.supervised ?? ['--resume']);
  }

  /** Starts a server with these options. From its first success on, it is started again whenever it ends. */
  async supervise(args: readonly string[]): Promise<Ready> {
    const ready = await this.launch(args);
    // Whichever port it got, the next one has the same: clients know it.
    const { port } = new URL(String(ready['url']));
    this.supervised = [...args, '--port', port];
    return ready;
  }

  /** A connection to the keeper has closed: it may have been that of the server. */
  look(): void {
    const { clock, isMember, hasDied } = this.options;
    if (this.isSupervised || this.ended || this.cancelPause || !isMember()) return;
    this.cancelPause = clock.after(Math.max(REVIVE_MS, this.pauseMs), () => {
      this.cancelPause = undefined;
      if (isMember() && hasDied()) this.startReported();
    });
  }

  /** Starts none any more. */
  retire(): void {
    this.ended = true;
    this.stopPause();
  }

  /** Ends it, and starts none any more. */
  async end(): Promise<void> {
    this.retire();
    await this.starting?.catch(() => undefined);
    const { pid } = this;
    if (pid === undefined) return;
    const kill = this.options.clock.after(LEAVE_MS, () => process.kill(pid, 'SIGKILL'));
    process.kill(pid, 'SIGTERM');
    process.kill(pid, 'SIGCONT');
    await this.exited;
    kill();
  }

  /** One start at a time: callers who need a server meanwhile get the same. */
  private launch(args: readonly string[]): Promise<Ready> {
    this.starting ??= this.run(args).finally(() => (this.starting = undefined));
    return this.starting;
  }

  private async run(args: readonly string[]): Promise<Ready> {
    this.stopPause();
    if (this.ended) throw new HoldfastError('keeper_lost', 'The keeper is ending.');
    const child = await this.options.start(this.plan(args));
    this.pid = child.pid;
    const { clock, report } = this.options;
    const begunUs = clock.nowUs();
    let leave: () => void = () => undefined;
    this.exited = new Promise((resolve) => (leave = resolve));
    return new Promise((resolve, reject) => {
      let text = '';
      child.listen({
        output: (stream, bytes) => {
          if (stream === 'stderr') report(`server: ${bytes.toString().trimEnd()}`);
          if (stream !== 'stdout' || text.includes('\n')) return;
          text += bytes.toString();
          if (text.includes('\n')) answer(text, resolve, reject);
        },
        exited: (status) => {
          if (this.pid === child.pid) this.pid = undefined;
          leave();
          reject(new HoldfastError('internal', 'The server ended before it served.'));
          this.startAgain(status, (clock.nowUs() - begunUs) / 1000);
        },
        ended: () => undefined,
      });
    });
  }

  private startAgain(status: ExitStatus, livedMs: number): void {
    const { clock, report } = this.options;
    this.pauseMs =
      livedMs >= LIVED_MS ? SHORTEST_PAUSE_MS : Math.min(this.pauseMs * 2, LONGEST_PAUSE_MS);
    if (this.ended) return;
    if (!this.isSupervised) {
      this.look();
      return;
    }
    const how = status.signal ?? `exit code ${status.code ?? 'unknown'}`;
    report(`The server ended (${how}). It is started again in ${this.pauseMs} ms.`);
    this.cancelPause = clock.after(this.pauseMs, () => this.startReported());
  }

  private startReported(): void {
    const { report } = this.options;
    this.start().then(
      ({ url }) => report(`The server serves ${String(url)} again.`),
      (error: unknown) => report(`The server cannot start: ${toErrorShape(error).message}`),
    );
  }

  private stopPause(): void {
    this.cancelPause?.();
    this.cancelPause = undefined;
  }

  private plan(args: readonly string[]): LaunchPlan {
    const { home, env } = this.options;
    const main = fileURLToPath(builtFile(import.meta.url, '../cli/main.js'));
    const file = process.execPath;
    return {
      file,
      argv: [file, ...ENGINE_FLAGS, main, 'serve', '--home', home, ...args, '--json'],
      env: Object.entries(env).map(([name, value]) => `${name}=${value ?? ''}`),
      cwd: '/',
      streams: 'separate',
      stdin: 'none',
      size: { cols: 80, rows: 24 },
    };
  }
}

/** The first line of a server that serves, or of one that cannot. */
function answer(
  text: string,
  resolve: (ready: Ready) => void,
  reject: (error: HoldfastError) => void,
): void {
  const said = JSON.parse(text) as Ready | { readonly error: ErrorShape };
  if (!('error' in said)) return resolve(said);
  const { code, message, details } = (said as { readonly error: ErrorShape }).error;
  reject(new HoldfastError(code, message, { ...details }));
}
