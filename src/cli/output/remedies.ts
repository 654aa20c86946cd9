// What to do about an error: remedies for the command line, where those of the error table are for other callers.

import { errors, type ErrorCode, type ErrorShape } from '../../protocol/errors.ts';

const here: Partial<Record<ErrorCode, string>> = {
  invalid_input: 'Correct it; "holdfast help COMMAND" explains a command.',
  not_found: '"holdfast ps --all" lists all processes.',
  key_conflict: 'Use a new --key for a different start.',
  not_running: '"holdfast logs ID" shows its output, "holdfast inspect ID" how it ended.',
  still_running: 'Stop it with "holdfast stop ID", or remove it with --force.',
  stdin_closed:
    'Start it with "holdfast run --stdin" or "holdfast run --pty". A closed stdin cannot be written to.',
  not_a_terminal: 'Start a terminal with "holdfast run --pty" or "holdfast tty create".',
  keyboard_held:
    'Someone is attached. Try again later, watch with "attach --read-only", or take the keyboard with "attach --steal".',
  keeper_unreachable: 'Read keeper.log in the state directory, or run "holdfast doctor".',
  server_running:
    'Use the running server, move it with "holdfast restart --port N", or start a second one with --socket PATH.',
  home_unsafe:
    'Make it a directory of your own with mode 0700, or use another one: --home DIR or HOLDFAST_HOME.',
};

export function remedyOf({ code, details }: ErrorShape): string {
  const { usage, remedy } = details ?? {};
  if (typeof usage === 'string') return `Usage: ${usage}`;
  if (typeof remedy === 'string') return remedy;
  return here[code] ?? errors[code].remedy;
}
