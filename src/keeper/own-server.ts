// The server that the keeper starts itself, for a program inside one of its processes that needs one: a server that such a
// program started would be inside as well, and could speak for one owner only.

import { fileURLToPath } from 'node:url';
import { builtFile } from '../base/workers/built-file.ts';
import { ENGINE_FLAGS } from '../base/engine-flags.ts';
import { HoldfastError, type ErrorShape } from '../protocol/errors.ts';
import type { Host } from '../host/host.ts';
import type { LaunchPlan } from '../protocol/process.ts';

/** What a server says when it serves; what a server that cannot serve says instead. */
type Said = Readonly<Record<string, unknown>> | { readonly error: ErrorShape };

export class OwnServer {
  private readonly host: Host;
  private readonly home: string;
  private readonly env: NodeJS.ProcessEnv;
  private pid: number | undefined;
  private starting: Promise<Said> | undefined;

  constructor(host: Host, home: string, env: NodeJS.ProcessEnv) {
    this.host = host;
    this.home = home;
    this.env = env;
  }

  /** Itself, and nothing that it starts. */
  is(pid: number): boolean {
    return pid === this.pid;
  }

  /** Answers with what it says when it serves. Takes the options of a server that died here, and none from the caller. */
  async start(): Promise<Said> {
    this.starting ??= this.launch().finally(() => (this.starting = undefined));
    const said = await this.starting;
    if (!('error' in said)) return said;
    const { code, message, details } = (said as { error: ErrorShape }).error;
    throw new HoldfastError(code, message, { ...details });
  }

  private async launch(): Promise<Said> {
    const child = await this.host.programs.startHelper(this.plan());
    this.pid = child.pid;
    return new Promise((resolve, reject) => {
      let text = '';
      child.listen({
        output: (stream, bytes) => {
          if (stream !== 'stdout' || text.includes('\n')) return;
          text += bytes.toString();
          if (text.includes('\n')) resolve(JSON.parse(text) as Said);
        },
        exited: () => {
          if (this.pid === child.pid) this.pid = undefined;
          reject(new HoldfastError('internal', 'The server ended before it served.'));
        },
        ended: () => undefined,
      });
    });
  }

  private plan(): LaunchPlan {
    const main = fileURLToPath(builtFile(import.meta.url, '../cli/main.js'));
    const file = process.execPath;
    return {
      file,
      argv: [file, ...ENGINE_FLAGS, main, 'serve', '--home', this.home, '--resume', '--json'],
      env: Object.entries(this.env).map(([name, value]) => `${name}=${value ?? ''}`),
      cwd: '/',
      streams: 'separate',
      stdin: 'none',
      size: { cols: 80, rows: 24 },
    };
  }
}
