// Asks whether a network or FUSE file system answers before this program touches a path on it. A dead one holds a thread of
// libuv's pool for as long as it likes; four of them would stop every read of this server, for all owners (ADR 20).

import { spawn } from 'node:child_process';
import { systemClock, type Clock } from '../../../base/clock.ts';
import { Mounts } from '../../../host/start/mounts.ts';
import { loadPosix } from '../../../system/posix.ts';
import { SystemError } from './error.ts';
import { nativeText, type BytePath } from './uri.ts';

/** How long a file system may take to answer; as for starts. */
const ANSWER_MS = 5000;
/** One that has answered is not asked again for this long. */
const FRESH_MS = 1000;
/** They depend on no other machine or program. */
const KERNEL = /^\/(?:proc|sys|dev)(?:\/|$)/;

interface Question {
  readonly answer: Promise<void>;
  /** It did not answer in time, and the helper may hang: no second one is started. */
  isLate: boolean;
}

export class AnsweringMounts {
  private readonly clock: Clock;
  private readonly answerMs: number;
  private readonly mounts = new Mounts(loadPosix());
  /** By mount point. */
  private readonly asked = new Map<string, Question>();
  private readonly answeredAtUs = new Map<string, number>();

  constructor(clock: Clock, { answerMs = ANSWER_MS } = {}) {
    this.clock = clock;
    this.answerMs = answerMs;
  }

  /** Rejects with ETIMEDOUT if the file system of this path does not answer. A local one is not asked. */
  async check(path: BytePath): Promise<void> {
    const name = nativeText(path);
    const mount = this.mounts.look().mountOf(name);
    if (mount === undefined || KERNEL.test(mount)) return;
    const freshUs = this.clock.nowUs() - FRESH_MS * 1000;
    if ((this.answeredAtUs.get(mount) ?? 0) > freshUs) return;
    const question = this.asked.get(mount) ?? this.ask(mount, name);
    if (question.isLate) throw new SystemError('ETIMEDOUT');
    await question.answer;
  }

  private ask(mount: string, name: string): Question {
    const options = { cwd: '/', env: {}, stdio: 'ignore', detached: true } as const;
    const helper = spawn('/bin/sh', ['-c', '[ -e "$1" ]', 'sh', name], options);
    const answer = new Promise<void>((resolve, reject) => {
      const cancel = this.clock.after(this.answerMs, () => {
        question.isLate = true;
        // One that hangs in the kernel ends when its file system answers.
        helper.kill('SIGKILL');
        helper.unref();
        reject(new SystemError('ETIMEDOUT'));
      });
      const ended = (settle: () => void): void => {
        cancel();
        this.asked.delete(mount);
        settle();
      };
      helper.once('error', (error) => ended(() => reject(error)));
      helper.once('exit', () =>
        ended(() => {
          if (!question.isLate) this.answeredAtUs.set(mount, this.clock.nowUs());
          resolve();
        }),
      );
    });
    const question: Question = { answer, isLate: false };
    this.asked.set(mount, question);
    return question;
  }
}

/** Of the program, as libuv's pool is. */
export const answeringMounts = new AnsweringMounts(systemClock);
