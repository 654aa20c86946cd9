// How the command of an execute call is started: by sh as it is, by bash with a report of its pipeline, and in an
// environment in which no program waits for a person.

import type { StartSpec } from '../../protocol/operations.ts';
import type { ToolInput } from '../tool-inputs.ts';
import type { ToolSettings } from '../tool-context.ts';

/** Turns off pagers, editors, prompts and colours. */
const UNATTENDED = {
  CODER_CHAT_AGENT: 'true',
  GIT_EDITOR: 'true',
  GIT_SEQUENCE_EDITOR: 'true',
  EDITOR: 'true',
  VISUAL: 'true',
  GIT_TERMINAL_PROMPT: '0',
  NO_COLOR: '1',
  TERM: 'dumb',
  PAGER: 'cat',
  GIT_PAGER: 'cat',
} as const;

// oxlint-disable-next-line no-control-regex
const STATUS_REPORT = /\x1b\]7770;pipeline=([\d ]+)\x07$/;
/** The longest report that is looked for at the end of the output. */
export const STATUS_BYTES = 512;

export function startSpec(
  { shell, workdir, stdin, tty, model_intent: intent }: ToolInput<'execute'>,
  settings: ToolSettings,
  started: { command: string; key: string; background: boolean },
): StartSpec {
  const { command, key, background } = started;
  const { directory, environment, browserSession } = settings;
  const cwd = workdir ?? directory;
  const { TERM, ...unattended } = UNATTENDED;
  return {
    ...(shell === 'bash' ? { argv: ['bash', '-c', command], marks: true } : { command }),
    ...(cwd !== undefined && { cwd }),
    ...(environment && { environment }),
    env: {
      ...settings.env,
      ...unattended,
      ...(tty !== true && { TERM }),
      ...(browserSession !== undefined && { AGENT_BROWSER_SESSION: browserSession }),
    },
    streams: tty === true ? 'pty' : 'merged',
    stdin: stdin === true ? 'pipe' : 'none',
    key,
    labels: {
      background: String(background),
      ...(intent !== undefined && intent !== '' && { intent: intent.slice(0, 200) }),
    },
  };
}

export function parseStatus(lastBytes: Buffer): number[] | undefined {
  const match = STATUS_REPORT.exec(lastBytes.subarray(-STATUS_BYTES).toString('latin1'));
  return match?.[1]?.split(' ').map(Number);
}
