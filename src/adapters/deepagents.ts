// Holdfast as the backend of LangChain's deepagents: `createDeepAgent({ backend: holdfastBackend(BaseSandbox, { holdfast }) })`.
// The class of the caller's copy is extended, so that nothing is imported from the framework.

import { randomId } from '../base/ids.ts';
import { HoldfastError } from '../protocol/errors.ts';
import { exitNumber, HostCommands, type AdapterOptions } from './host-commands.ts';

type FileProblem = 'file_not_found' | 'permission_denied' | 'is_directory' | 'invalid_path';

interface Executed {
  readonly output: string;
  readonly exitCode: number | null;
  readonly truncated: boolean;
}

interface HoldfastBackend {
  readonly id: string;
  execute(command: string): Promise<Executed>;
  uploadFiles(
    files: [string, Uint8Array][],
  ): Promise<{ path: string; error: FileProblem | null }[]>;
  downloadFiles(
    paths: string[],
  ): Promise<{ path: string; content: Uint8Array | null; error: FileProblem | null }[]>;
}

interface DeepAgentsOptions extends AdapterOptions {
  /** How long a command is waited for. It goes on after that. */
  readonly timeoutMs?: number;
}

const DEFAULT_TIMEOUT_MS = 30 * 60_000;

export function holdfastBackend<Base extends abstract new (...args: never[]) => object>(
  BaseSandbox: Base,
  options: DeepAgentsOptions,
): InstanceType<Base> & HoldfastBackend {
  const commands = new HostCommands(options);
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const Extended = BaseSandbox as unknown as new () => object;
  class Backend extends Extended implements HoldfastBackend {
    readonly id = `holdfast-${randomId()}`;

    /** Exact and merged: the framework parses it. */
    async execute(command: string): Promise<Executed> {
      const handle = await commands.start(command, { streams: 'merged' });
      const ended = await handle.wait({ timeoutMs });
      let [output, missed] = ['', 0];
      for await (const { text, missedBytes } of handle.logs()) {
        output += text;
        missed += missedBytes;
      }
      return { output, exitCode: ended ? exitNumber(ended) : null, truncated: missed > 0 };
    }

    uploadFiles(files: [string, Uint8Array][]): ReturnType<HoldfastBackend['uploadFiles']> {
      return Promise.all(
        files.map(async ([path, bytes]) => {
          const error = await problemOf(() => commands.writeFile(path, bytes));
          return { path, error: error ?? null };
        }),
      );
    }

    downloadFiles(paths: string[]): ReturnType<HoldfastBackend['downloadFiles']> {
      return Promise.all(
        paths.map(async (path) => {
          let content: Uint8Array | undefined;
          const error = await problemOf(async () => {
            content = await commands.readFile(path);
          });
          const missing = content === undefined ? 'file_not_found' : null;
          return { path, content: content ?? null, error: error ?? missing };
        }),
      );
    }
  }
  return new Backend() as unknown as InstanceType<Base> & HoldfastBackend;
}

async function problemOf(work: () => Promise<unknown>): Promise<FileProblem | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    if (/permission denied|read-only/i.test(error.message)) return 'permission_denied';
    if (/is a directory|directory nonexistent/i.test(error.message)) return 'is_directory';
    return /no such file/i.test(error.message) ? 'file_not_found' : 'invalid_path';
  }
}
