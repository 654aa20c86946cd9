// What a person finds in the help, and what the shell completes.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { helpOf, type CommandHead } from '../../src/cli/arguments/command.ts';
import { Words } from '../../src/cli/arguments/words.ts';
import { Caller } from '../../src/cli/caller.ts';
import { commands } from '../../src/cli/commands.ts';
import { Output } from '../../src/cli/output/output.ts';
import { ttyProgram } from '../../src/cli/tty/command.ts';
import { ttyCommands } from '../../src/cli/tty/main.ts';
import { parseBatch } from '../../src/terminals/batch.ts';
import { runHere } from '../support/command-line.ts';
import { temporaryFolder } from '../support/hosts.ts';

/** As a shell would, for lines without expansions. */
function shellWords(line: string): string[] {
  return Array.from(
    line.matchAll(/'([^']*)'|(\S+)/g),
    ([, quoted, plain]) => quoted ?? plain ?? '',
  );
}

/** The words behind the name of the command; the line may feed it through a pipe. */
function argumentsOf(line: string, name: string): string[] {
  const words = shellWords(line.slice(line.indexOf('holdfast')));
  const front = ['holdfast', ...name.split(' ')];
  expect(words.slice(0, front.length)).toEqual(front);
  return words.slice(front.length);
}

function expectExamples(command: CommandHead): void {
  expect([command.name, command.examples.length > 0]).toEqual([command.name, true]);
  const help = helpOf(command).map((line) => line.trim());
  expect(command.examples.filter((line) => !help.includes(line))).toEqual([]);
}

describe('the help', () => {
  it('[C62] every command has examples that it understands', async () => {
    const folder = temporaryFolder();
    const caller = new Caller({ env: {}, cwd: folder, home: folder, owner: undefined });
    const { stdout, stderr } = process;
    const out = new Output({ stdout, stderr, json: false, raw: false, colour: false });
    for (const load of commands.values()) {
      const { command } = await load();
      expectExamples(command);
      // Its commands have a table of their own.
      if (command.name === 'tty') continue;
      for (const line of command.examples) {
        const words = new Words(command, argumentsOf(line, command.name));
        // It looks whether there is a terminal.
        if (line.includes(' -it ') || command.name === 'attach')
          expect(words.plain).not.toEqual([]);
        else expect(command.read({ words, caller, out })).toBeTypeOf('function');
      }
    }
  });

  it('[C62] so have those of tty', async () => {
    const program = ttyProgram('holdfast tty');
    const batches: unknown[] = [];
    for (const command of await ttyCommands()) {
      expectExamples(command);
      for (const line of command.examples) {
        const words = new Words(command, argumentsOf(line, `tty ${command.name}`), program);
        if (command.name === 'batch') batches.push(parseBatch(JSON.parse(words.plain[1] ?? '')));
      }
    }
    expect(batches).toHaveLength(1);
  });

  it('[C62] help --json has the whole table, for programs', async () => {
    const { result } = JSON.parse((await runHere(['help', '--json'])).stdout) as {
      result: { commands: CommandHead[]; options: object };
    };
    const names = result.commands.map(({ name }) => name);
    expect(names).toContain('tty create');
    expect(names.filter((name) => !name.startsWith('tty '))).toHaveLength(commands.size - 1);
    expect(result.options).toHaveProperty('json');
    expect(result.commands.find(({ name }) => name === 'run')?.options).toHaveProperty('name');
  });
});

describe('completion', () => {
  it('[C63] asks for names once, and for nothing else', async () => {
    const folder = temporaryFolder();
    const { stdout: script } = await runHere(['completion', 'bash']);
    // Stands for the program: counts how often it is started.
    const program = '#!/bin/sh\necho asked >> "$COUNT"\necho web\necho worker\n';
    writeFileSync(join(folder, 'holdfast'), program, { mode: 0o755 });
    const complete = (...words: string[]): string =>
      `COMP_WORDS=(holdfast ${words.join(' ')}); COMP_CWORD=${words.length}; _holdfast; echo "\${COMPREPLY[@]}"`;
    const count = join(folder, 'count');
    writeFileSync(count, '');
    const lines = [
      complete('lo'),
      complete('logs', '--ta'),
      complete('wait', 'x', '--for', 'ex'),
      complete('logs', 'w'),
      complete('logs', 'we'),
      complete('stop', 'wo'),
      `SECONDS=3; ${complete('stop', 'wo')}`,
    ];
    // Without its special meaning, so that no time passes by itself.
    const clock = 'unset SECONDS; SECONDS=0';
    const text = execFileSync('bash', ['-c', `${clock}\n${script}\n${lines.join('\n')}`], {
      encoding: 'utf8',
      env: { ...process.env, PATH: `${folder}:${process.env['PATH']}`, COUNT: count },
    });
    const names = ['web worker', 'web', 'worker', 'worker'];
    expect(text.split('\n')).toEqual(['logs', '--tail', 'exit', ...names, '']);
    expect(readFileSync(count, 'utf8')).toBe('asked\nasked\n');
  });
});
