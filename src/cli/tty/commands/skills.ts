// `tty skills list`, `skills get`, `skills path`: instructions for agents on how to drive terminals.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TtyAnswer, TtyCall, TtyCommand } from '../command.ts';
import { TtyError } from '../envelope.ts';

const FOLDER = fileURLToPath(new URL('../../../../skill-data', import.meta.url));

interface Skill {
  readonly name: string;
  readonly source: 'bundled';
  readonly path: string;
  readonly content: string;
}

function all(): Skill[] {
  return readdirSync(FOLDER).map((name) => {
    const path = join(FOLDER, name, 'SKILL.md');
    return { name, source: 'bundled', path, content: readFileSync(path, 'utf8') };
  });
}

function named(call: TtyCall): Skill {
  const [name = ''] = call.expect('NAME');
  const known = all();
  const found = known.find((skill) => skill.name === name);
  if (found) return found;
  const names = known.map((skill) => skill.name);
  throw new TtyError(
    'SKILL_NOT_FOUND',
    `Skill not found. There is no "${name.slice(0, 40)}"; known are ${names.join(', ')}.`,
    { known: names },
  );
}

export const skillsList: TtyCommand = {
  name: 'skills list',
  usage: '',
  summary: 'List what can be read about driving terminals.',
  examples: ['holdfast tty skills list'],
  options: {},
  run: async (call): Promise<TtyAnswer> => {
    call.expect();
    const skills = all().map(({ name, source, content }) => ({
      name,
      description: /^description: (.*)$/m.exec(content)?.[1] ?? '',
      source,
    }));
    return {
      result: { skills },
      lines: skills.map((skill) => `${skill.name}\t${skill.description}`),
    };
  },
};

export const skillsGet: TtyCommand = {
  name: 'skills get',
  usage: 'NAME',
  summary: 'Print one.',
  examples: ['holdfast tty skills get agent-tty'],
  options: {},
  printsText: true,
  run: async (call): Promise<TtyAnswer> => {
    const skill = named(call);
    return { result: skill, lines: [skill.content.trimEnd()] };
  },
};

export const skillsPath: TtyCommand = {
  name: 'skills path',
  usage: 'NAME',
  summary: 'Print its folder.',
  examples: ['holdfast tty skills path agent-tty'],
  options: {},
  run: async (call): Promise<TtyAnswer> => {
    const { name, source, path: file } = named(call);
    const path = dirname(file);
    return { result: { name, source, path }, lines: [path] };
  },
};
