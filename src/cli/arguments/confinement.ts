// Options that limit and confine a process, for `run` and for tokens.

import { resolve } from 'node:path';
import type { StartSpec } from '../../protocol/operations.ts';
import type { Options } from './command.ts';
import type { Words } from './words.ts';

export const confinementOptions: Options = {
  memory: { type: 'string', value: '2G', about: 'limit the memory of all its processes together' },
  pids: { type: 'string', value: 'N', about: 'limit its processes at the same time' },
  cpus: { type: 'string', value: '1.5', about: 'limit its processors' },
  'cpu-seconds': { type: 'string', value: 'N', about: 'limit the processor time of each process' },
  'file-size': { type: 'string', value: '1G', about: 'limit the size of files it writes' },
  'open-files': { type: 'string', value: 'N', about: 'limit the open files of each process' },
  'read-only': { type: 'boolean', about: 'make all files read-only, except --write' },
  write: {
    type: 'string',
    multiple: true,
    value: 'DIR',
    completes: 'directory',
    about: 'make files read-only except in this folder',
  },
  hide: {
    type: 'string',
    multiple: true,
    value: 'PATH',
    completes: 'directory',
    about: 'hide a folder or file',
  },
  'no-net': { type: 'boolean', about: 'no network' },
  'drop-privileges': { type: 'boolean', about: 'setuid programs such as sudo gain nothing' },
  user: { type: 'string', value: 'NAME', about: 'run as this user; the keeper must be root' },
  enforce: {
    type: 'string',
    value: 'refuse|best',
    about: 'what cannot be enforced here is refused (default), or left out and named',
  },
};

/** Nothing, if none of the options was given. */
export function confinementOf(
  words: Words,
  cwd: string,
): Pick<StartSpec, 'limits' | 'sandbox' | 'enforce'> {
  const limits = given({
    memory: words.bytes('memory'),
    pids: words.count('pids'),
    cpus: words.fraction('cpus'),
    cpuSeconds: words.count('cpu-seconds'),
    fileBytes: words.bytes('file-size'),
    openFiles: words.count('open-files'),
  });
  const absolute = (name: string): string[] => words.texts(name).map((path) => resolve(cwd, path));
  const [write, hide, user] = [absolute('write'), absolute('hide'), words.text('user')];
  const isReadOnly = words.flag('read-only') || write.length > 0;
  const fs: NonNullable<StartSpec['sandbox']>['fs'] =
    hide.length > 0
      ? { write: isReadOnly ? write : ['/'], hide }
      : write.length > 0
        ? { write }
        : 'read-only';
  const sandbox = given({
    fs: isReadOnly || hide.length > 0 ? fs : undefined,
    net: words.flag('no-net') ? ('none' as const) : undefined,
    privileges: words.flag('drop-privileges') ? ('drop' as const) : undefined,
    user,
  });
  const enforce = words.choice('enforce', ['refuse', 'best']);
  return { ...(limits && { limits }), ...(sandbox && { sandbox }), ...(enforce && { enforce }) };
}

/** Undefined if every field is. */
function given<T extends object>(fields: T): T | undefined {
  const known = Object.entries(fields).filter(([, value]) => value !== undefined);
  return known.length === 0 ? undefined : (Object.fromEntries(known) as T);
}
