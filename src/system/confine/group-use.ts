// What the cgroup of a process has counted.

import { readFileSync } from 'node:fs';

/** Controllers that we use, where we may. */
export const CONTROLLERS = ['cpu', 'io', 'memory', 'pids'] as const;
export type Controller = (typeof CONTROLLERS)[number];

/** What the group of a process has counted. */
export interface GroupUse {
  readonly userUs: number;
  readonly systemUs: number;
  readonly throttledUs?: number;
  readonly peakBytes?: number;
  readonly peakProcesses?: number;
  readonly readBytes?: number;
  readonly writtenBytes?: number;
  /** Processes that the kernel ended because memory ran out. */
  readonly memoryVictims: number;
  /** Memory ran out at the limit of this group, and not at one around it. */
  readonly reachedMemoryLimit: boolean;
  /** Forks that were refused. */
  readonly refusedForks: number;
  readonly populated: boolean;
}

/** Undefined if the group is gone. */
export function readGroupUse(
  folder: string,
  controllers: ReadonlySet<Controller>,
): GroupUse | undefined {
  const read = (name: string): string => readText(`${folder}/${name}`);
  const events = read('cgroup.events');
  if (events === '') return undefined;
  const cpu = read('cpu.stat');
  const throttledUs = figure(cpu, 'throttled_usec');
  const has = (controller: Controller): boolean => controllers.has(controller);
  const [peak, io] = [has('memory') ? read('memory.peak') : '', has('io') ? read('io.stat') : ''];
  const most = has('pids') ? read('pids.peak') : '';
  return {
    userUs: figure(cpu, 'user_usec') ?? 0,
    systemUs: figure(cpu, 'system_usec') ?? 0,
    ...(throttledUs !== undefined && { throttledUs }),
    ...(peak !== '' && { peakBytes: Number(peak) }),
    ...(most !== '' && { peakProcesses: Number(most) }),
    ...(io !== '' && { readBytes: total(io, 'rbytes'), writtenBytes: total(io, 'wbytes') }),
    ...memoryEvents(has('memory') ? read : () => ''),
    refusedForks: has('pids') ? (figure(read('pids.events'), 'max') ?? 0) : 0,
    populated: figure(events, 'populated') === 1,
  };
}

/** Node reads a file as UTF-8 in one call into C++, which takes a third of the time of any other encoding. */
export function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** Each line is a name, a space and a number. */
function figure(text: string, name: string): number | undefined {
  const line = `\n${text}`.indexOf(`\n${name} `);
  return line < 0 ? undefined : Number.parseInt(text.slice(line + name.length + 1), 10);
}

/** Victims are counted in their group and in all around it; "oom" of the local file only in the group whose limit it was. */
function memoryEvents(
  read: (name: string) => string,
): Pick<GroupUse, 'memoryVictims' | 'reachedMemoryLimit'> {
  const memoryVictims = figure(read('memory.events'), 'oom_kill') ?? 0;
  const reachedMemoryLimit =
    memoryVictims > 0 && (figure(read('memory.events.local'), 'oom') ?? 0) > 0;
  return { memoryVictims, reachedMemoryLimit };
}

/** io.stat has a line for each device: "8:0 rbytes=1 wbytes=2 …". */
function total(text: string, name: string): number {
  return Array.from(text.matchAll(new RegExp(`\\b${name}=(\\d+)`, 'g')), ([, n]) =>
    Number(n),
  ).reduce((all, each) => all + each, 0);
}
