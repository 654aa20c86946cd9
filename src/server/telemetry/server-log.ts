// server.log: what the server of a home says of itself, its problems, and, at the level "debug", every request.

import { fstatSync, statSync } from 'node:fs';
import type { Clock } from '../../base/clock.ts';
import type { LogSettings } from '../../protocol/observe/log-settings.ts';
import type { Home } from '../../keeper/home.ts';
import { Log, problemEntry } from '../../keeper/log.ts';
import { loadPosix } from '../../system/posix.ts';
import type { AccessEntry } from '../http/request-context.ts';

/** What a server reports to, beside its log. */
export interface Reporters {
  readonly report: (message: string) => void;
  readonly access?: ((entry: AccessEntry) => void) | undefined;
}

export interface ServerLog extends Reporters {
  started(message: string): void;
  /** Its last line says why the server ends. */
  close(reason: string): Promise<void>;
}

const STDERR_FD = 2;

/** The log of the server that has the lock of its home. */
export function openServerLog(
  { serverLog: path }: Home,
  settings: LogSettings,
  { clock, report, access }: Reporters & { readonly clock: Clock },
): ServerLog {
  const isStderr = sameFile(path);
  // What Node itself prints goes to the file that is the log now.
  const opened = (fd: number): void => {
    if (isStderr) loadPosix()?.redirect(fd, STDERR_FD);
  };
  const log = new Log({ ...settings, path, part: 'server', clock, report, opened });
  return {
    report: (problem) => {
      log.note('warn', problemEntry(problem));
      if (!isStderr) report(problem);
    },
    access: log.has('debug') ? (entry) => (noteRequest(log, entry), access?.(entry)) : access,
    started: (message) => {
      log.note('info', { event: 'start', message });
      log.writeNow();
    },
    close: (message) => {
      log.note('info', { event: 'stop', message });
      return log.close();
    },
  };
}

function noteRequest(log: Log, { method, path, status, ms, ...entry }: AccessEntry): void {
  const { route, refusal, tokenId } = entry;
  log.note('debug', {
    event: 'request',
    message: `${method} ${path} ${status} ${ms.toFixed(1)} ms`,
    more: {
      status,
      ms,
      ...(route !== undefined && { route }),
      ...(refusal !== undefined && { refusal }),
      ...(tokenId !== undefined && { token: tokenId }),
    },
  });
}

/** Whether stderr is this file: what is printed there needs no second line. */
function sameFile(path: string): boolean {
  try {
    const [stderr, file] = [fstatSync(STDERR_FD), statSync(path)];
    return stderr.ino === file.ino && stderr.dev === file.dev;
  } catch {
    return false;
  }
}
