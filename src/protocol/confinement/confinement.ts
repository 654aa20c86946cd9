// What a process may use and touch: what a start asks for, and what held.

/** Of all processes of a start together, except the three that the kernel counts for each process. */
export interface ResourceLimits {
  /** Bytes. */
  readonly memory?: number | undefined;
  readonly pids?: number | undefined;
  /** 1.5: one and a half processors. */
  readonly cpus?: number | undefined;
  /** Of each process. */
  readonly cpuSeconds?: number | undefined;
  /** The largest file that a process can write. */
  readonly fileBytes?: number | undefined;
  /** Open files of each process. */
  readonly openFiles?: number | undefined;
}

export type LimitName = keyof ResourceLimits;

/** The deepest of the named paths decides; of equal ones "hide", then "write". */
export interface FilePolicy {
  readonly write: readonly string[];
  readonly hide?: readonly string[] | undefined;
  /** If given, only these can be read. */
  readonly read?: readonly string[] | undefined;
}

export interface Sandbox {
  readonly fs?: 'open' | 'read-only' | FilePolicy | undefined;
  readonly net?: 'open' | 'none' | undefined;
  /** drop: setuid programs gain nothing. */
  readonly privileges?: 'keep' | 'drop' | undefined;
  /** The name of a user; the host must be root. */
  readonly user?: string | undefined;
}

/** What a start asks for. */
export interface AskedConfinement {
  readonly limits?: ResourceLimits | undefined;
  readonly sandbox?: Sandbox | undefined;
  readonly enforce?: 'refuse' | 'best' | undefined;
}

/** What an owner's tokens allow its processes. */
export interface OwnerPolicy extends AskedConfinement {
  /** hidden: the state directory is out of reach. none: the admin said that nothing need be hidden. */
  readonly level: 'hidden' | 'none';
}

/** watch: the host looks several times per second and ends the processes. */
type LimitMeans = 'cgroup' | 'watch' | 'rlimit';
interface HeldLimit {
  readonly limit: number;
  readonly by: LimitMeans;
}

/** What held a process from its start on. */
export interface Confinement extends Partial<Readonly<Record<LimitName, HeldLimit>>> {
  readonly fs?: { readonly by: 'bubblewrap' | 'landlock' };
  readonly net?: { readonly by: 'netns' | 'seccomp' };
  readonly privileges?: { readonly by: 'no_new_privs' };
  readonly user?: { readonly name: string; readonly by: 'setuid' };
  /** The state directory and its sockets are out of reach, and the keeper cannot be signalled. */
  readonly hidden?: { readonly by: 'bubblewrap' | 'user' };
  /** The owner has a scoped token whose processes nothing confines. */
  readonly none?: true;
  /** Asked for with enforce "best", and not enforced. */
  readonly missing?: readonly string[];
}

/** Whether this machine can enforce something, and why not. */
export interface Means {
  readonly by:
    | 'cgroup'
    | 'watch'
    | 'rlimit'
    | 'bubblewrap'
    | 'landlock'
    | 'seccomp'
    | 'setuid'
    | 'no_new_privs'
    | 'no';
  /** What is missing and how to get it; for "watch", why the kernel does not do it. */
  readonly why?: string;
}

export type MeansName =
  | LimitName
  | 'fs'
  | 'hide'
  | 'net'
  | 'privileges'
  | 'user'
  | 'hidden'
  | 'group';
export type AllMeans = Readonly<Record<MeansName, Means>>;

/** What ended a process, or kept it from something, beside its outcome. */
export type Cause =
  | { readonly kind: 'memory_limit'; readonly victims: number; readonly sawBytes?: number }
  /** Not at its own limit: at one around it, such as the ceiling of all processes, or the end of the machine's memory. */
  | { readonly kind: 'out_of_memory'; readonly victims: number }
  | { readonly kind: 'pids_limit'; readonly hits: number }
  | { readonly kind: 'cpu_seconds' }
  | { readonly kind: 'file_bytes' };

/** Applied to a child before its first instruction. */
export interface Fence {
  readonly limits?: readonly {
    readonly resource: number;
    readonly soft: number;
    readonly hard: number;
  }[];
  readonly user?: {
    readonly uid: number;
    readonly gid: number;
    readonly groups: readonly number[];
  };
  readonly dropsPrivileges?: boolean;
  /** The descriptor of a Landlock ruleset. */
  readonly domain?: number;
  /** A seccomp filter. */
  readonly filter?: Uint8Array;
  /** For a program that must outlive the signals to its group. */
  readonly ignoresSignals?: boolean;
  /** The write end of a pipe, which the first program in a sandbox closes when the sandbox is ready. */
  readonly ready?: number;
  /** The descriptor of the cgroup that the child is born in. */
  readonly group?: number;
}
