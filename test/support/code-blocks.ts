// The code blocks of a Markdown page, and a shell that runs them as a reader would: one after the other, in one folder.
//
// ```console        a session: what stands behind "$ " (continued behind "> ") is typed, the rest must be printed
// ```sh             is run and must succeed; a line that ends with "# keeps running" (or "; in another terminal:") runs on
// ```js NAME        is written to a file of this name; without a name it is run
// ```LANGUAGE not run: WHY

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { main, root } from './command-line.ts';
import { onCleanup, stopKeeper, temporaryFolder } from './hosts.ts';
import { portToKeep } from './ports.ts';
import { endServer } from '../../src/cli/local/server.ts';

export interface Block {
  readonly page: string;
  readonly line: number;
  readonly language: string;
  /** The rest of the line that opens it. */
  readonly info: string;
  readonly code: string;
}

export function blocksOf(page: string): Block[] {
  const text = readFileSync(join(root, page), 'utf8');
  return Array.from(text.matchAll(/^```(\S*)[ ]*(.*)\n([^]*?)^```$/gm), (match): Block => {
    const [, language = '', info = '', code = ''] = match;
    const line = text.slice(0, match.index).split('\n').length;
    return { page, line, language, info, code };
  });
}

/** Ends the output of a command in the output of all. */
const MARK = '\u001e';
/** A page that stands still is ended, and the block named. */
const LONGEST_MS = 100_000;
/** Ports of the examples; each page gets others. */
const PORTS = ['8123', '4100'];

interface Step {
  readonly block: Block;
  readonly typed: string;
  /** What a session says that it prints. */
  readonly printed?: string;
}

function stepsOf(block: Block): Step[] {
  if (block.language !== 'console') return [{ block, typed: block.code.trimEnd() }];
  return block.code.split(/^\$ /m).flatMap((part) => {
    if (part.trim() === '') return [];
    const lines = part.trimEnd().split('\n');
    const more = lines.slice(1).findIndex((line) => !line.startsWith('> '));
    const count = more < 0 ? lines.length : more + 1;
    const typed = lines.slice(0, count).map((line, at) => (at === 0 ? line : line.slice(2)));
    return [{ block, typed: typed.join('\n'), printed: lines.slice(count).join('\n') }];
  });
}

function scriptOf({ block, typed, printed }: Step, number: number): string {
  const marked = (status: string): string => `printf '${MARK}${number} %s\\n' ${status}`;
  if (block.language === 'js' || block.language === 'json') {
    const file = block.info || `block-${block.line}.mjs`;
    const written = `mkdir -p "$(dirname ${file})"\ncat > ${file} <<'END OF FILE'\n${block.code}END OF FILE`;
    const run = block.info === '' ? `\nnode ${file}` : '';
    return `${written}${run}\n${marked('$?')}`;
  }
  if (printed !== undefined) return `${typed}\n${marked('0')}`;
  const lines = typed
    .split('\n')
    .map((line) =>
      /# keeps running(?:; in another terminal:)?$/.test(line)
        ? `coproc { exec ${line.replace(/#.*/, '')}; }\nkept+=($COPROC_PID); disown\nread -r -u "\${COPROC[0]}" _`
        : line,
    );
  return `set -e\n${lines.join('\n')}\nset +e\n${marked('$?')}`;
}

export interface Answered extends Step {
  readonly answer: string;
  readonly failed: boolean;
}

/** A person with a new home, in the folder of a new project, with `holdfast` on the PATH. */
export async function runBlocks(blocks: readonly Block[]): Promise<Answered[]> {
  const home = join(temporaryFolder(), 'person');
  const [bin, project] = [join(home, 'bin'), join(home, 'project')];
  for (const folder of [bin, join(project, 'node_modules')]) mkdirSync(folder, { recursive: true });
  writeFileSync(join(bin, 'holdfast'), `#!/bin/sh\nexec ${process.execPath} ${main} "$@"\n`, {
    mode: 0o755,
  });
  symlinkSync(root, join(project, 'node_modules/holdfast'));
  symlinkSync(join(root, 'node_modules/e2b'), join(project, 'node_modules/e2b'));
  const state = join(home, '.holdfast');
  onCleanup(async () => {
    await endServer(state);
    await stopKeeper(state);
  });
  const steps = blocks.flatMap(stepsOf);
  let script = `${steps.map(scriptOf).join('\n')}\nkill "\${kept[@]}" 2>/dev/null\n`;
  for (const port of PORTS) script = script.replaceAll(port, String(await portToKeep()));
  const file = join(home, 'script.sh');
  writeFileSync(file, script);
  const { HOLDFAST_HOME: _home, HOLDFAST_LIMITS: _limits, ...env } = process.env;
  // A file: what runs on would keep a pipe open.
  const printed = join(home, 'printed');
  const output = openSync(printed, 'w');
  const child = spawn('bash', [file], {
    cwd: project,
    stdio: ['ignore', output, output],
    timeout: LONGEST_MS,
    env: { ...env, HOME: home, PATH: `${bin}:${env['PATH']}`, HOLDFAST_IDLE: '60s', NO_COLOR: '1' },
  });
  await once(child, 'exit');
  closeSync(output);
  const text = readFileSync(printed, 'utf8');
  return steps.map((step, number) => answerOf(step, number, text));
}

function answerOf(step: Step, number: number, text: string): Answered {
  const end = new RegExp(`${MARK}${number} (\\d+)\n`).exec(text);
  if (!end) return { ...step, answer: text.slice(text.lastIndexOf(MARK)), failed: true };
  const before = text.slice(0, end.index);
  const start = before.lastIndexOf(MARK);
  const answer = start < 0 ? before : before.slice(before.indexOf('\n', start) + 1);
  return { ...step, answer: answer.trimEnd(), failed: end[1] !== '0' };
}

/** Without what differs each time: ids, times, ports, process numbers, tokens. */
function masked(text: string): string {
  return text
    .replaceAll(/\b[0-9a-z]{26}\b/g, 'ID')
    .replaceAll(/\b\d+(?:\.\d+)?(?:ms|s)\b/g, 'TIME')
    .replaceAll(/(?<=port[= ]|:)\d{4,5}\b/g, 'PORT')
    .replaceAll(/(?<=pid |keeper )\d+/g, 'PID')
    .replaceAll(/ +$/gm, '');
}

/** Whether a session printed what its page shows. "…" stands for anything, on a line of its own for lines. */
export function isAsShown(answer: string, shown: string): boolean {
  const escaped = masked(shown)
    .trimEnd()
    .replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
    .replaceAll(/^…\n/gm, '(?:[^]*\n)?')
    .replaceAll(/(?:^|\n)…$/g, '(?:\n?[^]*)')
    .replaceAll('…', '.*')
    .replaceAll(/ {2,}/g, ' +');
  return new RegExp(`^${escaped}$`).test(masked(answer));
}
