// Holdfast as the sandbox of OpenAI's Agents SDK: `run(agent, input, { sandbox: { client: holdfastSandboxClient(sdk, { holdfast }) } })`.
// The state of a session names its processes, so that a session that is resumed in another program still reaches them.

import { randomId } from '../base/ids.ts';
import { Utf8Stream } from '../base/bytes/utf8.ts';
import type { ProcessHandle } from '../client/process-handle.ts';
import { HoldfastError } from '../protocol/errors.ts';
import {
  exitNumber,
  HostCommands,
  unlessUnknown,
  within,
  type AdapterOptions,
} from './host-commands.ts';
import { cutToTokens, execText, type ExecAnswer } from './openai-exec-text.ts';
import {
  sandboxFiles,
  type ApplyDiff,
  type SandboxEntry,
  type SandboxFiles,
} from './openai-sandbox-files.ts';

interface Manifest {
  readonly root: string;
  readonly entries: Readonly<Record<string, SandboxEntry>>;
  readonly users: readonly unknown[];
  readonly groups: readonly unknown[];
  resolveEnvironment(): Promise<Record<string, string>>;
}

/** What is used of the caller's copy: `Manifest` of "@openai/agents-core/sandbox" and `applyDiff` of "@openai/agents-core". */
interface OpenAiSdk {
  readonly Manifest: new (given: never) => object;
  readonly applyDiff: ApplyDiff;
}

interface SandboxOptions extends AdapterOptions {
  /** False: `close` ends all processes of the session. True by default. */
  readonly keepOnClose?: boolean;
}

interface ExecArgs {
  readonly cmd: string;
  readonly workdir?: string | undefined;
  readonly shell?: string | undefined;
  readonly login?: boolean | undefined;
  readonly tty?: boolean | undefined;
  readonly yieldTimeMs?: number | undefined;
  readonly maxOutputTokens?: number | undefined;
  readonly runAs?: string | undefined;
}

interface WriteArgs extends Pick<ExecArgs, 'yieldTimeMs' | 'maxOutputTokens'> {
  readonly sessionId: number;
  readonly chars?: string | undefined;
}

/** A command that ran on after its answer. */
interface OpenCommand {
  readonly process: string;
  readonly tty: boolean;
  /** The last event whose output the model has. */
  after: number;
}

interface SandboxState {
  manifest: Manifest;
  workspaceReady: boolean;
  environment?: Record<string, string>;
  holdfast: { readonly id: string; last: number; readonly open: Record<number, OpenCommand> };
  [field: string]: unknown;
}

interface CreateArgs {
  readonly manifest?: object;
  readonly snapshot?: { readonly type?: string } | null;
}

const LABEL = 'openai-sandbox';
const EXEC_YIELD_MS = 10_000;
const WRITE_YIELD_MS = 250;
const INTERRUPT = '\u0003';

export function holdfastSandboxClient(sdk: OpenAiSdk, options: SandboxOptions) {
  const { holdfast, directory } = options;
  const isManifest = (given: object): given is Manifest => given instanceof sdk.Manifest;
  /** The root is the directory of the host, if the caller has named one. */
  const manifestOf = (given: object): Manifest => {
    const init = { ...given, ...(directory !== undefined && { root: directory }) };
    return new sdk.Manifest(init as never) as Manifest;
  };
  const openSession = (state: SandboxState): Session => {
    const session = new SandboxCommands(sdk, options, state);
    return Object.assign(session, session.files);
  };
  return {
    backendId: 'holdfast',
    supportsDefaultOptions: true,
    canPersistOwnedSessionState: () => true,
    resolveTrustedManifestForResume: manifestOf,

    async create(given: object = {}): Promise<Session> {
      const args: CreateArgs = isManifest(given) ? { manifest: given } : given;
      // The framework asks for a local one by default; here the files stay where they are.
      const { type = 'noop' } = args.snapshot ?? {};
      if (type !== 'noop' && type !== 'local') throw refusal(`a snapshot ("${type}")`);
      const manifest = manifestOf(args.manifest ?? {});
      if (manifest.users.length > 0 || manifest.groups.length > 0) throw refusal('other users');
      const environment = await manifest.resolveEnvironment();
      const place = { id: randomId(), last: 0, open: {} };
      const state = { manifest, workspaceReady: false, environment, holdfast: place };
      const session = openSession(state);
      await session.start();
      return session;
    },

    resume: async (state: SandboxState): Promise<Session> => openSession(state),

    serializeSessionState: async ({ holdfast: place, environment }: SandboxState) =>
      structuredClone({ holdfast: place, environment }),
    deserializeSessionState: async (stored: Record<string, unknown>) => stored as SandboxState,

    /** Ends all processes of the session. */
    delete: ({ holdfast: { id } }: SandboxState): Promise<void> =>
      new HostCommands({ holdfast }).killLabelled(`${LABEL}=${id}`),
  };
}

type Session = SandboxCommands & SandboxFiles;

class SandboxCommands {
  readonly state: SandboxState;
  readonly files: SandboxFiles;
  private readonly options: SandboxOptions;
  private readonly commands: HostCommands;
  /** A piece of output may end inside a character. */
  private readonly decoders = new Map<string, Utf8Stream>();

  constructor({ applyDiff }: OpenAiSdk, options: SandboxOptions, state: SandboxState) {
    this.state = state;
    this.options = options;
    const { holdfast, env } = options;
    const variables = { ...env, ...state.environment };
    this.commands = new HostCommands({ holdfast, directory: state.manifest.root, env: variables });
    this.files = sandboxFiles(this.commands, applyDiff);
  }

  /** Makes the root and what the manifest puts there, once: a session that is resumed keeps its files as they are. */
  async start(): Promise<void> {
    const { state } = this;
    if (state.workspaceReady) return;
    const { holdfast } = this.options;
    await new HostCommands({ holdfast }).output(['mkdir', '-p', '--', state.manifest.root]);
    await this.applyManifest(state.manifest);
    state.workspaceReady = true;
  }

  async applyManifest({ entries }: Pick<Manifest, 'entries'>): Promise<void> {
    for (const [path, entry] of Object.entries(entries))
      await this.files.materializeEntry({ path, entry });
  }

  async running(): Promise<boolean> {
    return (await this.options.holdfast.health()) !== undefined;
  }

  /** The processes go on, and `resume` finds them, unless `keepOnClose` is false. */
  async close(): Promise<void> {
    if (this.options.keepOnClose === false)
      await this.commands.killLabelled(`${LABEL}=${this.state.holdfast.id}`);
  }

  supportsPty(): boolean {
    return true;
  }

  async resolveExposedPort(port: number): Promise<{ host: string; port: number; tls: boolean }> {
    return { host: '127.0.0.1', port, tls: false };
  }

  async execCommand(args: ExecArgs): Promise<string> {
    return execText(await this.exec(args));
  }

  async exec(args: ExecArgs): Promise<ExecAnswer> {
    const { cmd, workdir, shell = '/bin/bash', login = true, tty = false, runAs } = args;
    if (runAs !== undefined) throw refusal(`another user ("${runAs}")`);
    const { holdfast: place, manifest } = this.state;
    const startedMs = performance.now();
    const handle = await this.commands.start([shell, login ? '-lc' : '-c', cmd], {
      streams: tty ? 'pty' : 'separate',
      stdin: 'pipe',
      labels: { [LABEL]: place.id },
      ...(workdir !== undefined && { cwd: within(manifest.root, workdir) }),
    });
    const command = { process: handle.id, tty, after: 0 };
    const number = place.last + 1;
    const waiting = { number, command, startedMs, yieldTimeMs: EXEC_YIELD_MS, ...defined(args) };
    const answer = await this.answer(handle, waiting);
    if (answer.sessionId !== undefined) place.last = number;
    return answer;
  }

  async writeStdin(args: WriteArgs): Promise<string> {
    const { sessionId, chars = '' } = args;
    const startedMs = performance.now();
    const command = this.state.holdfast.open[sessionId];
    const handle =
      command && (await this.options.holdfast.get(command.process).catch(unlessUnknown));
    if (!handle) {
      const output = `write_stdin failed: session not found: ${sessionId}`;
      return execText({ output, stdout: '', stderr: output, wallTimeSeconds: 0, exitCode: 1 });
    }
    await this.type(handle, command.tty, chars);
    const yieldTimeMs = args.yieldTimeMs ?? WRITE_YIELD_MS;
    const { maxOutputTokens } = args;
    const waiting = { number: sessionId, command, startedMs, yieldTimeMs, maxOutputTokens };
    return execText(await this.answer(handle, waiting));
  }

  /** Without a terminal a Ctrl-C is a signal. A command that has ended says so in its answer. */
  private async type(handle: ProcessHandle, tty: boolean, chars: string): Promise<void> {
    const text = tty ? chars : chars.replaceAll(INTERRUPT, '');
    try {
      if (text !== '') await handle.stdin.write(text);
      if (!tty && chars.includes(INTERRUPT)) await handle.signal('SIGINT', { by: 'write_stdin' });
    } catch (error) {
      if (!(error instanceof HoldfastError) || error.code !== 'not_running') throw error;
    }
  }

  /** Waits for the exit; then the output since the last answer. */
  private async answer(
    handle: ProcessHandle,
    { number, command, startedMs, yieldTimeMs, maxOutputTokens }: Waiting,
  ): Promise<ExecAnswer> {
    const ended = await handle.wait({ timeoutMs: yieldTimeMs });
    const printed = await this.printedSince(handle, command);
    const { open } = this.state.holdfast;
    if (ended) delete open[number];
    else open[number] = command;
    return {
      stdout: printed.stdout,
      stderr: printed.stderr,
      wallTimeSeconds: (performance.now() - startedMs) / 1000,
      ...cutToTokens(printed.all, maxOutputTokens),
      ...(ended ? { exitCode: exitNumber(ended) } : { sessionId: number }),
    };
  }

  private async printedSince(
    handle: ProcessHandle,
    command: OpenCommand,
  ): Promise<{ all: string; stdout: string; stderr: string }> {
    const printed = { all: '', stdout: '', stderr: '' };
    for await (const event of handle.events({ since: command.after })) {
      command.after = event.seq;
      if (event.missedBytes > 0)
        printed.all += `[holdfast: ${event.missedBytes} bytes of output are missing here]\n`;
      if (event.kind !== 'output') continue;
      const stream = event.stream === 'stderr' ? 'stderr' : 'stdout';
      const name = `${handle.id} ${stream}`;
      const decoder = this.decoders.get(name) ?? new Utf8Stream();
      this.decoders.set(name, decoder);
      const text = decoder.push(event.data);
      printed[stream] += text;
      printed.all += text;
    }
    return printed;
  }
}

interface Waiting {
  readonly number: number;
  readonly command: OpenCommand;
  readonly startedMs: number;
  readonly yieldTimeMs: number;
  readonly maxOutputTokens?: number | undefined;
}

function defined({ yieldTimeMs, maxOutputTokens }: ExecArgs): Partial<Waiting> {
  return { ...(yieldTimeMs !== undefined && { yieldTimeMs }), maxOutputTokens };
}

function refusal(what: string): HoldfastError {
  return new HoldfastError(
    'invalid_input',
    `The sandbox of Holdfast cannot have ${what}: its commands run as the user of the host, in its folders.`,
  );
}
