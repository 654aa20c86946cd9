// `holdfast debug`

import { closeSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ProcessInfo } from '../../protocol/process.ts';
import type { Answer, Command } from '../arguments/command.ts';
import { formatBytes } from '../arguments/units.ts';
import { openTarget } from '../output/target-file.ts';
import { summaries } from '../summaries.ts';
import { checkMachine } from './doctor.ts';

export const command: Command = {
  name: 'debug',
  usage: 'bundle [FILE] [--commands] [--output ID]',
  takes: ['bundle'],
  summary: summaries.debug,
  examples: ['holdfast debug bundle', 'holdfast debug bundle report.tar.gz --commands'],
  options: {
    commands: {
      type: 'boolean',
      about: 'also what processes are called, what they run and where',
    },
    output: {
      type: 'string',
      multiple: true,
      value: 'ID',
      about: 'also the last 64 KB that this process printed',
    },
    force: { type: 'boolean', about: 'overwrite FILE' },
  },
  notes: [
    'Writes one text file for a bug report (default holdfast-debug.txt; "-" is stdout): versions, checks, figures,',
    'states of processes and the logs. It has no tokens, no values of variables or settings, no commands and no',
    'output, unless you ask for them. Read it before you send it. It starts no keeper, except for --output.',
    '  holdfast debug bundle --output tests',
  ],
  read({ words, caller, out }) {
    const [what = '', path = 'holdfast-debug.txt'] = words.expect('bundle', '[FILE]');
    if (what !== 'bundle') throw words.wrong(`"${what}" is not "bundle"`);
    const [commands, ids, overwrite] = [
      words.flag('commands'),
      words.texts('output'),
      words.flag('force'),
    ];
    if (out.json && path === '-')
      throw words.wrong('--json needs a FILE: stdout cannot carry both');
    return async (): Promise<Answer> => {
      // A keeper that does not answer is what a report may be about.
      if (await caller.scope().catch(() => undefined))
        await caller.refuseInside('describe the machine');
      const outputs: ProcessInfo[] = [];
      for (const id of ids) outputs.push(await caller.find(id));
      const { bundleText } = await import('../local/bundle.ts');
      const file = resolve(caller.cwd, path);
      // Opened before the work: a place that cannot be written is known at once.
      const fd = path === '-' ? undefined : openTarget('debug', file, overwrite);
      try {
        const text = await bundleText({ caller, checks: checkMachine, commands, outputs });
        if (fd === undefined) await out.bytes('stdout', Buffer.from(text));
        else writeFileSync(fd, text);
        const bytes = Buffer.byteLength(text);
        const lines = [`${path} (${formatBytes(bytes)}) is written. Read it before you send it.`];
        return { result: { file, bytes }, lines: fd === undefined ? [] : lines };
      } finally {
        if (fd !== undefined) closeSync(fd);
      }
    };
  },
};
