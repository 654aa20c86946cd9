// The drop-in exec-server as a program of its own, so that it can be killed.

import { spawn, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { firstLine } from './command-line.ts';
import { onCleanup, stopKeeper } from './hosts.ts';
import { portToKeep } from './ports.ts';

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/** Our drop-in server, on the same port each time it is started. */
export class ExecServer {
  port = 0;
  url = '';
  private readonly home: string;
  private child: ChildProcess | undefined;
  private ended: Promise<void> | undefined;

  private readonly words: readonly string[];

  constructor(home: string, words: readonly string[] = []) {
    this.home = home;
    this.words = words;
    onCleanup(async () => {
      await this.kill();
      await stopKeeper(home);
    });
  }

  async start(): Promise<void> {
    this.port ||= await portToKeep();
    const child = spawn(
      process.execPath,
      [
        main,
        'exec-server',
        '--home',
        this.home,
        '--listen',
        `ws://127.0.0.1:${this.port}`,
        ...this.words,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    this.child = child;
    this.ended = new Promise((resolve) => child.once('exit', () => resolve()));
    this.url = await firstLine(child.stdout);
  }

  async kill(): Promise<void> {
    const { child } = this;
    this.child = undefined;
    if (!child) return;
    child.kill('SIGKILL');
    await this.ended;
  }
}
