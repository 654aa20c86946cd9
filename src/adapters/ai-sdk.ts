// Holdfast as the sandbox of Vercel's AI SDK (`experimental_sandbox`), and its tools as tools of the AI SDK.

import { toolDefinitions } from '../tools/definitions.ts';
import type { Toolbox } from '../tools/toolbox.ts';
import type { ProcessHandle } from '../client/process-handle.ts';
import { exitNumber, HostCommands, within, type AdapterOptions } from './host-commands.ts';

interface CommandOptions {
  readonly command: string;
  readonly workingDirectory?: string | undefined;
  readonly env?: Record<string, string> | undefined;
  readonly abortSignal?: AbortSignal | undefined;
}

interface FileOptions {
  readonly path: string;
  readonly abortSignal?: AbortSignal | undefined;
}

const KINDS: Readonly<Record<string, 'file' | 'directory' | 'symlink'>> = {
  f: 'file',
  d: 'directory',
  l: 'symlink',
};

export function holdfastSandbox(options: AdapterOptions) {
  const commands = new HostCommands(options);
  const start = (
    { command, workingDirectory, env }: CommandOptions,
    stdin: 'pipe' | 'none',
  ): Promise<ProcessHandle> =>
    commands.start(command, {
      stdin,
      ...(workingDirectory !== undefined && {
        cwd: within(options.directory, workingDirectory),
      }),
      ...(env && { env }),
    });
  return {
    description: `Commands run in a POSIX shell on a Holdfast host${options.directory === undefined ? '' : `, in ${options.directory}`}. They keep running when the connection is lost.`,
    async run(given: CommandOptions) {
      const handle = await start(given, 'none');
      const { exitCode } = await untilAborted(handle, given.abortSignal);
      const [stdout, stderr] = await Promise.all(
        (['stdout', 'stderr'] as const).map((stream) => commands.bytes(handle, stream)),
      );
      return { exitCode, stdout: String(stdout), stderr: String(stderr) };
    },
    async spawn(given: CommandOptions & { readonly stdin?: boolean }) {
      const handle = await start(given, given.stdin === true ? 'pipe' : 'none');
      return {
        pid: handle.pid,
        stdout: handle.stream({ stream: 'stdout' }),
        stderr: handle.stream({ stream: 'stderr' }),
        wait: () => untilAborted(handle, given.abortSignal),
        kill: async (): Promise<void> => void (await handle.kill()),
        ...(given.stdin === true && { stdin: inputOf(handle) }),
      };
    },
    ...filesOf(commands),
  };
}

/** Relative paths begin in the base directory. */
function filesOf(commands: HostCommands) {
  const readBinaryFile = async ({ path }: FileOptions): Promise<Uint8Array | null> =>
    (await commands.readFile(path)) ?? null;
  const writeBinaryFile = ({ path, content }: FileOptions & { content: Uint8Array }) =>
    commands.writeFile(path, content);
  return {
    readBinaryFile,
    async readFile(given: FileOptions): Promise<ReadableStream<Uint8Array> | null> {
      const bytes = await readBinaryFile(given);
      return bytes && new Blob([Uint8Array.from(bytes)]).stream();
    },
    /** Lines count from 1 and are both included. */
    async readTextFile(
      given: FileOptions & { encoding?: string; startLine?: number; endLine?: number },
    ): Promise<string | null> {
      const bytes = await readBinaryFile(given);
      if (!bytes) return null;
      const text = new TextDecoder(given.encoding ?? 'utf-8').decode(bytes);
      const { startLine = 1, endLine } = given;
      if (startLine === 1 && endLine === undefined) return text;
      return text
        .split('\n')
        .slice(startLine - 1, endLine)
        .join('\n');
    },
    writeBinaryFile,
    writeTextFile: ({ path, content }: FileOptions & { content: string }) =>
      commands.writeFile(path, content),
    async writeFile(given: FileOptions & { content: ReadableStream<Uint8Array> }): Promise<void> {
      const bytes = new Uint8Array(await new Response(given.content).arrayBuffer());
      await writeBinaryFile({ path: given.path, content: bytes });
    },
    async stat({ path }: FileOptions) {
      const found = await commands.fileType(path);
      if (!found) return null;
      const { type, size } = found;
      const isFile = type.startsWith('regular');
      const kind = isFile ? 'file' : type === 'directory' ? 'directory' : 'other';
      return { type: kind, size } as const;
    },
    async listDirectory({ path }: FileOptions) {
      const found = await commands.fileType(path);
      if (!found) return null;
      if (found.type !== 'directory') throw new Error(`${path} is not a directory`);
      const entries = await commands.list(path);
      return entries.map(({ name, kind }) => ({ name, type: KINDS[kind] ?? ('other' as const) }));
    },
    async deleteFile({ path }: FileOptions): Promise<boolean> {
      const script = 'test -e "$1" -o -L "$1" || { echo no; exit 0; }; unlink -- "$1" && echo yes';
      return (await commands.output(['sh', '-c', script, 'sh', path])).toString() === 'yes\n';
    },
  };
}

/** The tools for models. `jsonSchema` is the caller's function of that name from "ai". */
export function holdfastTools<Schema>(
  toolbox: Toolbox,
  jsonSchema: (schema: never) => Schema,
): Record<string, HoldfastTool<Schema>> {
  const rows = toolDefinitions.map(({ name, description, inputSchema }) => {
    const execute: HoldfastTool<Schema>['execute'] = async (input, { toolCallId, abortSignal }) => {
      const call = { callId: toolCallId, ...(abortSignal && { signal: abortSignal }) };
      const answer = await toolbox.call(name, input, call);
      return answer.isError ? { success: false, error: answer.text } : answer.result;
    };
    return [name, { description, inputSchema: jsonSchema(inputSchema as never), execute }] as const;
  });
  return Object.fromEntries(rows);
}

interface HoldfastTool<Schema> {
  readonly description: string;
  readonly inputSchema: Schema;
  execute(
    input: unknown,
    call: { readonly toolCallId: string; readonly abortSignal?: AbortSignal | undefined },
  ): Promise<Readonly<Record<string, unknown>>>;
}

/** An abort kills the process with all that it started, and rejects with the reason. */
async function untilAborted(
  handle: ProcessHandle,
  signal: AbortSignal | undefined,
): Promise<{ exitCode: number }> {
  let killed: Promise<unknown> | undefined;
  const kill = (): void => {
    killed = handle.kill();
    // Awaited below, when the process has exited.
    killed.catch(() => undefined);
  };
  signal?.addEventListener('abort', kill, { once: true });
  if (signal?.aborted) kill();
  try {
    const ended = await handle.waitForExit();
    await killed;
    signal?.throwIfAborted();
    return { exitCode: exitNumber(ended) };
  } finally {
    signal?.removeEventListener('abort', kill);
  }
}

function inputOf({ stdin }: ProcessHandle): WritableStream<Uint8Array> {
  return new WritableStream({
    write: (chunk) => stdin.write(chunk),
    close: () => stdin.end(),
  });
}
