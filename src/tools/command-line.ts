// The command of an execute call as it is started: by sh as it is, by bash with a last word about its pipeline, and in an
// environment in which no program waits for a person.

import type { StartSpec } from '../protocol/operations.ts';
import type { ProcessInfo } from '../protocol/process.ts';
import type { ToolInput } from './tool-inputs.ts';
import type { ToolSettings } from './tool-room.ts';

/** Pagers, editors and prompts give way; colours are not asked for. */
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

/**
 * Only bash tells the statuses of a pipeline, and only to itself: it says them last, in a control sequence that no text
 * view shows. A script with an EXIT trap of its own, or one that becomes another program, says nothing.
 */
const TELL_STATUS =
  'trap \'__s=("${PIPESTATUS[@]}"); [ ${#__s[@]} -gt 1 ] && printf "\\033]7770;pipeline=%s\\007" "${__s[*]}"\' EXIT\n';
// oxlint-disable-next-line no-control-regex
const TOLD_STATUS = /\x1b\]7770;pipeline=([\d ]+)\x07$/;
/** The longest of it that is looked for at the end of the output. */
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
    ...(shell === 'bash' ? { argv: ['bash', '-c', TELL_STATUS + command] } : { command }),
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

/** The command as it was given. */
export function commandOf({ command, argv }: ProcessInfo): string {
  const [program, , script] = argv;
  if (program !== 'bash' || script?.startsWith(TELL_STATUS) !== true) return command;
  return script.slice(TELL_STATUS.length);
}

export function toldStatus(lastBytes: Buffer): number[] | undefined {
  const match = TOLD_STATUS.exec(lastBytes.toString('latin1'));
  return match?.[1]?.split(' ').map(Number);
}
