// `holdfast ssh-command`: what sshd runs in place of the command of its client (ForceCommand, or command="..." of a key).

import { HoldfastError } from '../../protocol/errors.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { inheritedEnvironment } from '../../base/inherited-environment.ts';
import type { Answer, Call, Command } from '../arguments/command.ts';
import type { RunPlan } from '../arguments/run-plan.ts';
import { terminalSize } from '../output/terminal-size.ts';
import { summaries } from '../summaries.ts';
import { attachPerson, runFailureExit, runPlanned, showUntilExit } from './run.ts';

export const command: Command = {
  name: 'ssh-command',
  usage: '',
  summary: summaries['ssh-command'],
  examples: ['holdfast ssh-command'],
  options: {},
  notes: [
    'For sshd_config: "ForceCommand holdfast ssh-command"; for one key in authorized_keys: command="holdfast ssh-command".',
    'Runs the command of the ssh client ($SSH_ORIGINAL_COMMAND) in the shell of the user, or the login shell, on a',
    'terminal if the client asked for one. It keeps running when the connection is lost.',
    '"ssh HOST @NAME COMMAND" gives it a name. If a process of that name runs, it is attached to instead: all its',
    'output comes again. "ssh HOST @NAME" goes on with it, also after its exit; "ssh -t HOST @NAME" starts a login',
    'shell if nothing runs.',
  ],
  failureExit: runFailureExit,
  read(call) {
    call.words.expect();
    const { name, command: given } = wanted(call.caller.env['SSH_ORIGINAL_COMMAND'] ?? '');
    const plan = planOf(call, name, given);
    return () => runOrGoOn(call, plan, given);
  },
};

/** "@build make all" is the command "make all" under the name "build". */
function wanted(text: string): { name?: string; command?: string } {
  const [, name, rest = ''] = /^@([^\s@]+)(?:\s+([^]*))?$/.exec(text) ?? [];
  const command = name === undefined ? text : rest;
  return { ...(name !== undefined && { name }), ...(command !== '' && { command }) };
}

function planOf({ caller }: Call, name: string | undefined, given: string | undefined): RunPlan {
  const { SSH_ORIGINAL_COMMAND: _given, ...env } = caller.env;
  const shell = env['SHELL'] || '/bin/sh';
  const onTerminal = process.stdin.isTTY && process.stdout.isTTY;
  return {
    spec: {
      argv: given === undefined ? [shell, '-l'] : [shell, '-c', given],
      cwd: caller.cwd,
      environment: { inherit: 'none' },
      env: inheritedEnvironment(env, onTerminal),
      streams: onTerminal ? 'pty' : 'separate',
      stdin: 'pipe',
      ...(onTerminal && { size: terminalSize(process.stdout) }),
      ...(name !== undefined && { name }),
    },
    background: false,
    interactive: onTerminal,
    stdin: !onTerminal,
    // The connection may be lost.
    keep: true,
    colours: onTerminal,
    timeoutMs: undefined,
  };
}

async function runOrGoOn(call: Call, plan: RunPlan, given: string | undefined): Promise<Answer> {
  const { name } = plan.spec;
  if (name === undefined) return runPlanned(call, plan);
  const { caller, out } = call;
  const running = await newest(call, name, { state: 'running' });
  const found = running ?? (given === undefined && !plan.interactive && (await newest(call, name)));
  if (found) {
    const what = given === undefined ? '' : '; the command was not started again';
    if (running) await out.note(`attached to ${found.id}, which runs as "${name}"${what}.`);
    // A connection that was lost holds the keyboard for some seconds.
    if (plan.interactive && found.streams === 'pty')
      return attachPerson(call, found, { steal: true });
    return showUntilExit(call, found, plan);
  }
  if (given !== undefined || plan.interactive) return runPlanned(call, plan);
  throw new HoldfastError('not_found', `No process has the name "${name}".`, {
    usage: `ssh HOST @${name} COMMAND`,
    owner: caller.name,
  });
}

async function newest(
  { caller }: Call,
  name: string,
  more: { readonly state?: 'running' } = {},
): Promise<ProcessInfo | undefined> {
  const host = await caller.host();
  const { processes } = await host.list(caller.sees, { name, limit: 1, ...more });
  return processes[0];
}
