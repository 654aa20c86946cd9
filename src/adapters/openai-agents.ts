// Holdfast as the shell of OpenAI's Agents SDK: `shellTool({ shell: holdfastShell({ holdfast }) })`.

import { HoldfastError } from '../protocol/errors.ts';
import { exitNumber, HostCommands, type AdapterOptions } from './host-commands.ts';

interface ShellAction {
  readonly commands: readonly string[];
  /** For each command. The command goes on after it. */
  readonly timeoutMs?: number;
  /** Characters of both streams together. */
  readonly maxOutputLength?: number;
}

interface ShellOutput {
  readonly stdout: string;
  readonly stderr: string;
  readonly outcome:
    | { readonly type: 'exit'; readonly exitCode: number | null }
    | { readonly type: 'timeout' };
}

const DEFAULT_TIMEOUT_MS = 120_000;
/** What shells answer for a command that cannot be started. */
const NOT_STARTED = 127;

export function holdfastShell(options: AdapterOptions) {
  const commands = new HostCommands(options);
  const runOne = async (
    command: string,
    timeoutMs: number,
    ids: string[],
  ): Promise<ShellOutput> => {
    let handle;
    try {
      handle = await commands.start(command);
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      const outcome = { type: 'exit', exitCode: NOT_STARTED } as const;
      return { stdout: '', stderr: `${error.message}\n`, outcome };
    }
    ids.push(handle.id);
    const ended = await handle.wait({ timeoutMs });
    const printed = { stdout: '', stderr: '' };
    for await (const { stream, text, missedBytes } of handle.logs()) {
      const name = stream === 'stderr' ? 'stderr' : 'stdout';
      printed[name] +=
        `${missedBytes > 0 ? `[${missedBytes} bytes are missing here]\n` : ''}${text}`;
    }
    if (!ended) {
      const note = `[holdfast: still running as ${handle.id}; it was not killed]\n`;
      return { ...printed, stderr: onOwnLine(printed.stderr, note), outcome: { type: 'timeout' } };
    }
    if (ended.outcome.kind === 'exit')
      return { ...printed, outcome: { type: 'exit', exitCode: exitNumber(ended) } };
    const how = ended.signal === undefined ? `its outcome is unknown` : `ended by ${ended.signal}`;
    const stderr = onOwnLine(printed.stderr, `[holdfast: ${how}]\n`);
    return { ...printed, stderr, outcome: { type: 'exit', exitCode: null } };
  };
  return {
    async run({ commands: given, timeoutMs = DEFAULT_TIMEOUT_MS, maxOutputLength }: ShellAction) {
      const ids: string[] = [];
      const output: ShellOutput[] = [];
      for (const command of given) {
        const one = await runOne(command, timeoutMs, ids);
        output.push(maxOutputLength === undefined ? one : shortened(one, maxOutputLength));
      }
      const { directory } = options;
      const about = {
        process_ids: ids,
        ...(directory !== undefined && { working_directory: directory }),
      };
      const limit = maxOutputLength === undefined ? {} : { maxOutputLength };
      return { output, ...limit, providerData: about };
    },
  };
}

function onOwnLine(text: string, line: string): string {
  return text === '' || text.endsWith('\n') ? text + line : `${text}\n${line}`;
}

/** stderr first: it is short and says what went wrong. */
function shortened(output: ShellOutput, most: number): ShellOutput {
  const stderr = bothEnds(output.stderr, Math.ceil(most / 2));
  return { ...output, stderr, stdout: bothEnds(output.stdout, Math.max(0, most - stderr.length)) };
}

function bothEnds(text: string, most: number): string {
  if (text.length <= most) return text;
  const head = Math.ceil(most / 2);
  const tail = Math.floor(most / 2);
  const end = tail === 0 ? '' : text.slice(-tail);
  return `${text.slice(0, head)}\n[${text.length - head - tail} characters are missing here]\n${end}`;
}
