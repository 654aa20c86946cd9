// `holdfast service`

import { existsSync, rmSync } from 'node:fs';
import { withoutLauncher } from '../../base/inherited-environment.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Answer, Command } from '../arguments/command.ts';
import { durationOf } from '../arguments/values.ts';
import type { Words } from '../arguments/words.ts';
import type { Caller } from '../caller.ts';
import { lingers, manage, problemOfUnit, requireManager, stateOf } from '../local/systemd.ts';
import { findUnit, programIn, unitPath, unitText, writeUnit } from '../local/unit-file.ts';
import { alignedRows } from '../output/table.ts';
import { settings } from '../settings/table.ts';
import { everySetting } from '../settings/setting.ts';
import { summaries } from '../summaries.ts';

const ACTIONS = ['install', 'status', 'remove'] as const;
const UP = '"holdfast up" under another supervisor does the same';
const LINGER = 'To run it without a login, also after a reboot:  loginctl enable-linger';

export const command: Command = {
  name: 'service',
  usage: 'install|status|remove [--name NAME] [--no-start]',
  summary: summaries.service,
  examples: ['holdfast service install', 'holdfast service status'],
  takes: ACTIONS,
  options: {
    name: { type: 'string', value: 'NAME', about: 'name of the unit (default holdfast)' },
    'no-start': { type: 'boolean', about: 'with install: only write the unit' },
  },
  notes: [
    'A systemd user unit that runs "holdfast up": keeper and server start with your session and again when they fail.',
    'With cgroups of its own (Delegate=yes) limits of memory and processes work. Its settings are those of config.toml.',
    '"remove" stops it, and so ends every process with its grace period. A unit that is not ours is never changed.',
    'Exit code 1 of "status": it is not installed, not active, or its program is gone.',
  ],
  read({ words, caller }) {
    const [word = ''] = words.expect(ACTIONS.join('|'));
    const action = ACTIONS.find((each) => each === word);
    if (!action) throw words.wrong(`"${word}" is not one of ${ACTIONS.join(', ')}`);
    const unit = { name: nameOf(words), caller };
    const noStart = words.flag('no-start');
    if (action === 'status') return async () => status(unit);
    if (action === 'remove') return () => remove(unit);
    return () => install(unit, noStart);
  },
};

interface Unit {
  readonly name: string;
  readonly caller: Caller;
}

function nameOf(words: Words): string {
  const name = words.text('name') ?? 'holdfast';
  if (!/^[A-Za-z0-9][\w.-]{0,99}$/.test(name))
    throw words.wrong(`--name "${name}" is not a name of letters, digits, ".", "_" and "-"`);
  return name.replace(/\.service$/, '');
}

async function install({ name, caller }: Unit, noStart: boolean): Promise<Answer> {
  const { env, home } = caller;
  await caller.refuseInside('install a service');
  if (!noStart) requireManager(env, `write the unit alone with --no-start; ${UP}`);
  const file = unitPath(name, env);
  const old = ownUnit(name, file);
  if (old?.home !== undefined && old.home !== home)
    throw new HoldfastError('invalid_input', `${file} is the service of ${old.home}.`, {
      remedy: 'Give this one another --name.',
    });
  const found = await caller.settings();
  const text = unitText({
    home,
    program: [process.execPath, process.argv[1] ?? ''],
    path: withoutLauncher(env)['PATH'],
    graceMs: durationOf(found.text('up', 'grace') ?? settings.up.grace.usual),
  });
  const problem = await problemOfUnit(env, file, text);
  if (problem !== undefined)
    throw new HoldfastError('unsupported', `systemd would refuse the unit: ${problem}`);
  const running = noStart ? undefined : await caller.running();
  writeUnit(file, text);
  const lines = [`${old ? 'Replaced' : 'Wrote'} ${file}.`];
  if (noStart) lines.push(`Start it with:  systemctl --user daemon-reload && ${startLine(name)}`);
  else {
    manage(env, 'daemon-reload');
    manage(env, 'enable', `${name}.service`);
    const pid = running?.keeper.pid;
    if (pid !== undefined && stateOf(env, name)?.pid !== String(pid))
      lines.push(
        `A keeper that is not this service runs already (pid ${pid}). End it with its processes, then start the service:`,
        `  holdfast shutdown && ${startLine(name)}`,
      );
    else {
      manage(env, 'start', `${name}.service`);
      lines.push(`It runs. Its log:  journalctl --user -u ${name}`);
      if (pid !== undefined)
        lines.push(`It ran already, and keeps running as it was until:  ${restartLine(name)}`);
    }
  }
  if (lingers(env) === false) lines.push(LINGER);
  const ignored = everySetting.flatMap(({ section, name: key, variable }) =>
    found.find(section, key)?.from === 'variable' ? [variable] : [],
  );
  const variables = [...new Set(ignored)];
  if (variables.length > 0)
    lines.push(
      `The service does not have these variables; write the settings to ${found.file}: ${variables.join(', ')}`,
    );
  return { result: { name, file, home, started: !noStart, variables }, lines };
}

function startLine(name: string): string {
  return `systemctl --user enable --now ${name}`;
}

/** Ends its processes. */
function restartLine(name: string): string {
  return `systemctl --user restart ${name}   (this ends its processes)`;
}

/** The unit if it is there; one of other people is refused. */
function ownUnit(name: string, file: string): ReturnType<typeof findUnit> {
  const found = findUnit(file);
  if (found && !found.isOurs)
    throw new HoldfastError(
      'invalid_input',
      `${file} was not made by "holdfast service install"; it is left as it is.`,
      { remedy: `Give another --name than "${name}", or remove that file yourself.` },
    );
  return found;
}

function status({ name, caller }: Unit): Answer {
  const { env } = caller;
  const file = unitPath(name, env);
  const unit = findUnit(file);
  const gone = programIn(unit?.text ?? '').filter((each) => !existsSync(each));
  const state = stateOf(env, name);
  const linger = lingers(env);
  const isActive = state?.active.startsWith('active') === true;
  const about = !unit ? 'not installed' : unit.isOurs ? file : `${file}, not made by Holdfast`;
  const rows = [
    ['unit', about],
    ...(unit?.home === undefined ? [] : [['home', unit.home]]),
    ...gone.map((each) => ['program', `${each} is gone: run "holdfast service install" again`]),
    ['state', state ? `${state.active}, ${state.enabled}` : 'unknown: systemd does not answer'],
    ['without a login', linger === undefined ? 'unknown' : linger ? 'yes' : `no. ${LINGER}`],
  ];
  return {
    result: {
      name,
      file: unit ? file : null,
      ours: unit?.isOurs ?? null,
      home: unit?.home ?? null,
      gone,
      state: state ?? null,
      linger: linger ?? null,
    },
    lines: alignedRows(rows, Infinity),
    exitCode: unit?.isOurs && gone.length === 0 && isActive ? 0 : 1,
  };
}

async function remove({ name, caller }: Unit): Promise<Answer> {
  const { env } = caller;
  await caller.refuseInside('remove the service');
  const file = unitPath(name, env);
  if (!ownUnit(name, file))
    return { result: { name, removed: false }, lines: [`There is no unit ${file}.`] };
  const isAsked = stateOf(env, name) !== undefined;
  if (isAsked) manage(env, 'disable', '--now', `${name}.service`);
  rmSync(file);
  if (isAsked) manage(env, 'daemon-reload');
  const ended = isAsked ? ' Its keeper, server and processes have ended.' : '';
  const lines = [`Removed ${file}.${ended} Output and settings stay in ${caller.home}.`];
  return { result: { name, removed: true, file }, lines };
}
