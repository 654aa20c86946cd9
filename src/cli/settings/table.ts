// The table of settings: what describes an installation rather than one call. Options, variables, config.toml, help and
// docs/operations/configuration.md are made from it.

import { defaultLimits, type Limits } from '../../protocol/limits.ts';
import { LOG_FORMATS, LOG_LEVELS } from '../../protocol/observe/log-settings.ts';
import type { OptionRow } from '../arguments/command.ts';

export interface SettingRow {
  readonly kind:
    | 'text'
    | 'path'
    | 'count'
    | 'duration'
    | 'bytes'
    | 'boolean'
    | 'list'
    | 'choice'
    | 'limits';
  readonly about: string;
  /** The default, as a person would write it; absent when there is none. */
  readonly usual?: string;
  /** What stands for the value in the help: "DIR", "30s". */
  readonly value?: string;
  readonly completes?: OptionRow['completes'];
  readonly choices?: readonly string[];
  /** The largest number. */
  readonly most?: number;
  /** What a number without a unit counts, where that is not seconds. */
  readonly bare?: 'ms';
  /** Where the name of its variable is not made from its own. */
  readonly variable?: string;
  /** Only a variable and the file can set it. */
  readonly noOption?: true;
}

export type Rows = Readonly<Record<string, SettingRow>>;

/** One variable has all limits, as JSON. */
export const LIMITS_VARIABLE = 'HOLDFAST_LIMITS';

/** The largest TCP port. */
export const MOST_PORT = 65_535;

const serve = {
  port: {
    kind: 'count',
    most: MOST_PORT,
    value: 'N',
    usual: '0',
    about: 'TCP port; 0: any free port',
  },
  host: { kind: 'text', value: 'ADDR', usual: '127.0.0.1', about: 'IP address to bind to' },
  socket: {
    kind: 'path',
    value: 'PATH',
    usual: 'server.sock in the home',
    about: 'unix socket, or "none"',
  },
  'token-file': {
    kind: 'path',
    value: 'FILE',
    about: 'accept the secret in this file as an admin token; it is created if missing',
  },
  directory: {
    kind: 'path',
    value: 'DIR',
    completes: 'directory',
    usual: '~',
    about: 'default directory of commands from coder, codex and MCP',
  },
  'allow-host': {
    kind: 'list',
    value: 'NAME',
    about: 'allow one more Host header (with port if sent), for a reverse proxy',
  },
  'completion-webhook': {
    kind: 'text',
    value: 'URL',
    about: 'POST every process exit here until it answers 2xx; signed with webhook.key',
  },
  'completion-webhook-insecure': {
    kind: 'boolean',
    usual: 'false',
    about: 'allow plain HTTP to another machine for the webhook',
  },
  'limits-total': {
    kind: 'limits',
    value: 'LIMITS',
    about: 'ceiling of all processes together, such as memory=8G,pids=500,cpus=2, or none',
  },
  'allow-remote': {
    kind: 'boolean',
    usual: 'false',
    about: 'allow an address that other machines can reach; put TLS in front of it',
  },
  'allow-origin': {
    kind: 'list',
    value: 'ORIGIN',
    about: 'allow requests from web pages of this origin, such as http://127.0.0.1:8080',
  },
  'insecure-no-auth': {
    kind: 'boolean',
    usual: 'false',
    about: 'require no token: every local user can run commands as you; loopback only',
  },
} as const satisfies Rows;

const { directory: _, 'limits-total': _total, ...gatewayServe } = serve;

const aboutLimits: Readonly<Record<keyof Limits, string>> = {
  journalBytes: 'output on disk of one process: its first quarter and its newest rest are kept',
  journalHeadBytes: 'the part of journalBytes that is kept from the beginning',
  totalBytes: 'output on disk of all processes; the oldest closed ones are deleted first',
  memoryBytes: 'output of one process in memory while the disk refuses it',
  closedAgeMs: 'closed processes are deleted after this long',
  closedCount: 'closed processes beyond this number are deleted, oldest first',
  liveCount: 'live processes; a start beyond it is refused',
  leaseCount: 'named leases',
  parkedWaits: 'pending waits of all callers',
  graceMs: 'time between SIGTERM and SIGKILL',
  writeIds: 'ids of writes that are remembered for each process',
  inputBytes: 'input that was accepted and that the process has not read',
  pathAnswerMs: 'how long a start waits for paths on a network file system',
  startsPerTurn: 'children started in one turn of the event loop',
};

export const settings = {
  keeper: {
    idle: {
      kind: 'duration',
      usual: '15m',
      variable: 'HOLDFAST_IDLE',
      noOption: true,
      about: 'how long a keeper stays without processes',
    },
    cgroups: {
      kind: 'boolean',
      usual: 'true',
      variable: 'HOLDFAST_CGROUPS',
      noOption: true,
      about: 'give each process a cgroup of its own where that is possible',
    },
    bubblewrap: {
      kind: 'path',
      usual: 'bwrap in its usual places',
      variable: 'HOLDFAST_BUBBLEWRAP',
      noOption: true,
      about: 'the program bwrap that makes sandboxes',
    },
  },
  log: {
    level: {
      kind: 'choice',
      choices: LOG_LEVELS,
      usual: 'info',
      variable: 'HOLDFAST_LOG',
      noOption: true,
      about: 'the least important lines of keeper.log and server.log',
    },
    format: {
      kind: 'choice',
      choices: LOG_FORMATS,
      usual: 'text',
      variable: 'HOLDFAST_LOG_FORMAT',
      noOption: true,
      about: 'form of the lines',
    },
  },
  limits: Object.fromEntries(
    Object.entries(defaultLimits).map(([name, value]) => [name, limitRow(name, value)]),
  ),
  serve: {
    ...serve,
    handover: {
      kind: 'boolean',
      usual: 'true',
      variable: 'HOLDFAST_HANDOVER',
      noOption: true,
      about: 'hand waiting clients over to the keeper, which answers them even if the server dies',
    },
  },
  up: {
    grace: {
      kind: 'duration',
      value: '5s',
      usual: '5s',
      about: 'on SIGTERM, how long processes have before KILL',
    },
  },
  mcp: {
    directory: {
      kind: 'path',
      value: 'DIR',
      completes: 'directory',
      usual: 'the current one',
      about: 'working directory of commands',
    },
    'max-output': {
      kind: 'count',
      value: 'BYTES',
      usual: '32768',
      about: 'maximum output in one result',
    },
    'max-wait': {
      kind: 'duration',
      value: '45s',
      usual: '45s',
      about: 'maximum wait for clients that do not ask for progress',
    },
    cancel: {
      kind: 'choice',
      choices: ['detach', 'interrupt'],
      usual: 'detach',
      about: 'leave the process of a cancelled call running, or interrupt it',
    },
    idle: {
      kind: 'duration',
      value: '12h',
      usual: '12h',
      about: 'close a terminal after this long without activity; 0: never',
    },
    progress: {
      kind: 'duration',
      value: '5s',
      usual: '5s',
      about: 'interval of progress notifications',
    },
  },
  'exec-server': {
    listen: {
      kind: 'text',
      value: 'URL',
      usual: 'ws://127.0.0.1:0',
      about: 'ws://IP:PORT or stdio',
    },
    'ws-auth': {
      kind: 'choice',
      value: 'KIND',
      choices: ['none', 'capability-token', 'signed-bearer-token'],
      usual: 'a token in its address',
      about: 'capability-token, signed-bearer-token or none',
    },
    'ws-token-file': { kind: 'path', value: 'FILE', about: 'file with the capability token' },
    'ws-token-sha256': { kind: 'text', value: 'HEX', about: 'SHA-256 of the capability token' },
    'ws-shared-secret-file': {
      kind: 'path',
      value: 'FILE',
      about: 'file with the secret of signed tokens',
    },
    'ws-issuer': { kind: 'text', value: 'NAME', about: 'required issuer of signed tokens' },
    'ws-audience': { kind: 'text', value: 'NAME', about: 'required audience of signed tokens' },
    'ws-max-clock-skew-seconds': {
      kind: 'count',
      value: 'N',
      usual: '30',
      about: 'how far clocks may differ',
    },
    'concurrent-requests': {
      kind: 'count',
      value: 'N',
      usual: 'concurrently',
      about: '1: handle requests one after the other',
    },
    'detach-time': {
      kind: 'duration',
      value: '30m',
      usual: '30m',
      about: 'how long a session outlives its connection',
    },
    'allow-remote': serve['allow-remote'],
  },
  gateway: {
    name: {
      kind: 'text',
      value: 'NAME',
      usual: 'made from the host name',
      about: 'name of this gateway',
    },
    admission: {
      kind: 'path',
      value: 'FILE',
      about: 'what "holdfast fleet admit --gateway" printed for this gateway',
    },
    archive: {
      kind: 'text',
      value: 'URL',
      about: 'keep the output of ended processes at file:///FOLDER or s3://BUCKET/PREFIX',
    },
    ca: {
      kind: 'path',
      value: 'FILE',
      usual: "the machine's own",
      about: "authority that signed NATS's certificate",
    },
    ...gatewayServe,
  },
} as const satisfies Readonly<Record<string, Rows>>;

export type Section = keyof typeof settings;

/** The names of limits, their variable and their values in it are those of the HTTP API. */
function limitRow(name: string, value: number): SettingRow {
  const kind = name.endsWith('Bytes') ? 'bytes' : name.endsWith('Ms') ? 'duration' : 'count';
  return {
    kind,
    ...(kind === 'duration' && { bare: 'ms' as const }),
    usual: shown(kind, value),
    variable: LIMITS_VARIABLE,
    noOption: true,
    about: aboutLimits[name as keyof Limits],
  };
}

function shown(kind: SettingRow['kind'], value: number): string {
  if (kind === 'bytes') return `${value / 1024 ** 2}M`;
  if (kind === 'duration') return value >= 3_600_000 ? `${value / 3_600_000}h` : `${value / 1000}s`;
  return String(value);
}
