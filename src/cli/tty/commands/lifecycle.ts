// `tty create`, `list`, `inspect`, `destroy`

import { accessSync, constants } from 'node:fs';
import { isAbsolute, resolve } from 'node:path';
import { VERSION } from '../../../base/version.ts';
import type { HostApi, SignalResult } from '../../../protocol/host-api.ts';
import { socketIn } from '../../../system/private-folder.ts';
import { decodeRecords } from '../../../protocol/record.ts';
import type { StartSpec } from '../../../protocol/operations.ts';
import type { ProcessInfo } from '../../../protocol/process.ts';
import type { TtyAnswer, TtyCall, TtyCommand } from '../command.ts';
import { tabbedRow } from '../../output/table.ts';
import { TtyError } from '../envelope.ts';
import { HomeRegistry } from '../home-registry.ts';
import { serverAnswers } from '../server-answers.ts';
import {
  artifactSummary,
  findTerminal,
  manifestOf,
  noteDestroyed,
  statusOf,
  terminalsOf,
  terminationCategory,
} from '../sessions.ts';

export const create: TtyCommand = {
  name: 'create',
  usage: '[options] [-- COMMAND...]',
  summary: 'Open a terminal with a shell, or with a command.',
  examples: [
    'holdfast tty create --name shell -- bash',
    'holdfast tty create --cols 120 --rows 40 -- vim notes.txt',
  ],
  options: {
    shell: { type: 'string', about: 'the shell (default $SHELL, else /bin/sh)' },
    command: { type: 'string', about: 'the same as --shell' },
    cwd: { type: 'string', about: 'working directory (default: the current one)' },
    cols: { type: 'string', about: 'columns (80)' },
    rows: { type: 'string', about: 'rows (24)' },
    env: { type: 'string', multiple: true, about: 'NAME=value, for its environment' },
    term: { type: 'string', about: 'TERM (xterm-256color)' },
    name: { type: 'string', about: 'a name to find it by' },
    'idle-timeout-ms': { type: 'string', about: 'end it after this long without activity' },
    'no-marks': { type: 'boolean', about: 'do not change the shell: its runs end by a sentinel' },
  },
  async run(call): Promise<TtyAnswer> {
    const { caller } = call;
    const given = call.text('shell') ?? call.text('command') ?? call.settings.shell;
    const shell = given ?? caller.env['SHELL'] ?? '/bin/sh';
    if (given !== undefined && call.plain.length === 0) checkShell(given);
    const argv = call.plain.length > 0 ? [...call.plain] : [shell];
    const spec = specOf(call, argv);
    const host = await call.host();
    const { process } = await host.start(caller.name, spec);
    await serverAnswers(caller.home, process);
    new HomeRegistry(caller.env).note(caller.home);
    const names = call.texts('env').map((pair) => pair.slice(0, pair.indexOf('=')));
    const result = {
      sessionId: process.id,
      createdAt: new Date(process.startedAtMs).toISOString(),
      cols: process.size?.cols,
      rows: process.size?.rows,
      shell: argv[0],
      ...(names.length > 0 && { env: Object.fromEntries(names.map((name) => [name, '[set]'])) }),
      ...(spec.idleTimeoutMs !== undefined && { idleTimeoutMs: spec.idleTimeoutMs }),
      ...(process.terminal?.marks !== undefined && { marks: process.terminal.marks }),
    };
    return { result, lines: [process.id] };
  },
};

function checkShell(path: string): void {
  if (!isAbsolute(path) && !path.includes('/')) return;
  try {
    accessSync(path, constants.X_OK);
  } catch {
    throw new TtyError('INVALID_INPUT', `The shell ${path} cannot be executed.`, { shell: path });
  }
}

function specOf(call: TtyCall, argv: string[]): StartSpec {
  const { caller } = call;
  const { settings } = call;
  const cols = call.dimension('cols', String(settings.cols ?? 80));
  const rows = call.dimension('rows', String(settings.rows ?? 24));
  const idleTimeoutMs = call.count('idle-timeout-ms') ?? settings.idleTimeoutMs ?? 0;
  const [term, name] = [call.text('term') ?? settings.term, call.text('name')];
  return {
    argv,
    streams: 'pty',
    marks: !call.flag('no-marks'),
    cwd: resolve(caller.cwd, call.text('cwd') ?? '.'),
    size: { cols, rows },
    environment: { inherit: 'none' },
    env: { ...environmentOf(call), TERM: term ?? 'xterm-256color' },
    ...(term !== undefined && { term }),
    ...(name !== undefined && { name }),
    ...(idleTimeoutMs > 0 && { idleTimeoutMs }),
  };
}

function environmentOf(call: TtyCall): Record<string, string> {
  const aboutUs = /^(HOLDFAST_.*|AGENT_TTY_HOST_RENDERER|_|COLUMNS|LINES)$/i;
  const own = Object.entries(call.caller.env).filter(
    ([name, value]) => value !== undefined && !aboutUs.test(name),
  ) as [string, string][];
  const given = call.texts('env').map((pair): [string, string] => {
    const at = pair.indexOf('=');
    if (at < 1) throw call.wrong('--env must be KEY=VALUE');
    return [pair.slice(0, at), pair.slice(at + 1)];
  });
  // Otherwise zsh marks every line that does not end with a line feed.
  return Object.fromEntries([...own, ['PROMPT_EOL_MARK', ''], ...given]);
}

export const list: TtyCommand = {
  name: 'list',
  usage: '[--all]',
  summary: 'List sessions that run; with --all also those that have ended.',
  examples: ['holdfast tty list'],
  options: { all: { type: 'boolean', about: 'also those that have ended' } },
  async run(call): Promise<TtyAnswer> {
    call.expect();
    const found = (await terminalsOf(call.caller)).toSorted(
      (a, b) => a.startedAtMs - b.startedAtMs || (a.id < b.id ? -1 : 1),
    );
    const every = found.map((process) => rowOf(call, process));
    const sessions = call.flag('all')
      ? every
      : every.filter(({ status }) => status === 'running' || status === 'destroying');
    const lines = sessions.map((row) =>
      tabbedRow([row.sessionId, row.status, row.createdAt, row.name ?? '', row.command.join(' ')]),
    );
    return { result: { sessions }, lines };
  },
};

function rowOf({ caller }: TtyCall, process: ProcessInfo) {
  return {
    sessionId: process.id,
    status: statusOf(caller, process),
    command: process.argv,
    createdAt: new Date(process.startedAtMs).toISOString(),
    ...(process.name !== undefined && { name: process.name }),
    pid: process.outcome?.kind === 'lost' ? null : process.pid,
  };
}

export const inspect: TtyCommand = {
  name: 'inspect',
  usage: 'ID',
  summary: 'Show all details of a terminal.',
  examples: ['holdfast tty inspect shell --json'],
  options: {},
  async run(call): Promise<TtyAnswer> {
    const [id = ''] = call.expect('ID');
    const { caller } = call;
    const process = await findTerminal(caller, id);
    const host = await call.host();
    const page = await host.read(process.owner, { id: process.id, maxBytes: 1 });
    const [first] = decodeRecords(page.records);
    const size =
      first?.kind === 'started' ? (first.body['size'] as ProcessInfo['size']) : undefined;
    const session = {
      ...manifestOf(caller, process, host.keeper.pid),
      ...(size && { creationCols: size.cols, creationRows: size.rows }),
    };
    const result = {
      session,
      eventCount: process.seq,
      uptime: process.durationMs,
      lastEventSeq: process.seq,
      terminationCategory: terminationCategory(caller, process),
      artifacts: artifactSummary(caller, process),
      // The keeper that held the terminal has died: the screen comes from the journal.
      usedOfflineReplay: process.outcome?.kind === 'lost',
      rendererRuntime: rendererRuntime(call, process),
      ...(process.state === 'running' && {
        host: { cliVersion: VERSION, rpcSocketPath: socketIn(caller.home, 'keeper.sock') },
      }),
      eventLogBytes: process.bytes.retained,
    };
    return {
      result,
      lines: Object.entries(session).map(([name, value]) => `${name}: ${String(value)}`),
    };
  },
};

/** A screen is rendered from the journal for each command that needs one, also after the exit. */
function rendererRuntime({ settings }: TtyCall, { state, outcome }: ProcessInfo) {
  const backend = settings.renderers.screen;
  if (state === 'running')
    return {
      backend,
      mode: 'live-host',
      status: 'healthy',
      profile: settings.profile,
      booted: false,
      bootInFlight: false,
    };
  const reason = outcome?.kind === 'lost' ? 'host-unreachable' : 'session-not-running';
  return { backend, mode: 'offline-replay', status: 'fallback', reason };
}

export const destroy: TtyCommand = {
  name: 'destroy',
  usage: 'ID [--force]',
  summary: 'End a terminal and everything in it.',
  examples: ['holdfast tty destroy shell'],
  options: { force: { type: 'boolean', about: 'send SIGKILL at once' } },
  async run(call): Promise<TtyAnswer> {
    const [id = ''] = call.expect('ID');
    const { caller } = call;
    const process = await findTerminal(caller, id);
    if (statusOf(caller, process) === 'destroyed') {
      const details = { sessionId: process.id };
      throw new TtyError(
        'SESSION_ALREADY_DESTROYED',
        `Session ${process.id} was destroyed.`,
        details,
      );
    }
    noteDestroyed(caller, process);
    const host = await call.host();
    let survivors: readonly unknown[] = [];
    if (!process.settled) {
      const ended = await end(host, process, call.flag('force')).catch(ignoreEnded);
      survivors = ended?.survivors ?? [];
      await host.wait(process.owner, { waits: [{ id: process.id, for: [{ kind: 'exit' }] }] });
    }
    const result = {
      sessionId: process.id,
      destroyed: true,
      ...(survivors.length > 0 && { survivors }),
    };
    return { result, lines: [`${process.id} destroyed`] };
  },
};

/** An interactive shell ignores SIGTERM and exits on SIGHUP, so SIGHUP comes first. */
async function end(
  host: HostApi,
  { owner, id }: ProcessInfo,
  force: boolean,
): Promise<SignalResult> {
  const by = 'destroy';
  if (force) return host.signal(owner, { id, signal: 'KILL', by });
  await host.signal(owner, { id, signal: 'HUP', by });
  const settled = [{ id, for: [{ kind: 'settled' as const }] }];
  await host.wait(owner, { waits: settled, timeoutMs: HANG_UP_MS });
  return host.signal(owner, { id, signal: 'terminate', by, graceMs: DESTROY_GRACE_MS });
}

const HANG_UP_MS = 500;
const DESTROY_GRACE_MS = 1000;

function ignoreEnded(error: unknown): undefined {
  if ((error as { code?: string }).code !== 'not_running') throw error;
}
