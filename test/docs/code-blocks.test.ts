// Every code block of the README and of docs/ runs here, in another test, or says why it cannot run.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'smol-toml';
import { describe, expect, it } from 'vitest';
import { root } from '../support/command-line.ts';
import { blocksOf, isAsShown, runBlocks, type Block } from '../support/code-blocks.ts';

/** `PAGE=tutorial` runs the blocks of one page. */
const only = process.env['PAGE'];
const pages = [
  'README.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name))
    .toSorted(),
];
const blocks = pages.flatMap(blocksOf);

const NOT_RUN = /^not run: \S.{5,}/;
/** Samples that a test of their own runs, with the page that they are on: [SV18] and [U2]. */
const ELSEWHERE = ['README.md', 'docs/sdk.md'];
/** All pages on a busy machine; each has a limit of its own. */
const PATIENCE_MS = 400_000;
/** Pages at the same time; most of it is waiting. */
const AT_ONCE = 4;
const RUN = new Set(['console', 'sh', 'js']);

function isRun({ language, info }: Block): boolean {
  return (RUN.has(language) || (language === 'json' && info !== '')) && !NOT_RUN.test(info);
}

/** How a block that is not run is checked, or why not; undefined: it should be. */
function isAccounted({ page, language, info, code }: Block): boolean {
  if (NOT_RUN.test(info) || language === '' || language === 'text') return true;
  if (language === 'ts') return ELSEWHERE.includes(page);
  if (language === 'toml') return Object.keys(parse(code)).length > 0;
  return language === 'json' && isJson(code);
}

/** One value, or one on each line. */
function isJson(code: string): boolean {
  const parses = (text: string): boolean => {
    try {
      JSON.parse(text);
      return true;
    } catch {
      return false;
    }
  };
  return parses(code) || code.trim().split('\n').every(parses);
}

describe('code blocks', () => {
  it('[DOC4] each is run, or is data that can be read, or says why it cannot run here', () => {
    const unknown = blocks.filter((block) => !isRun(block) && !isAccounted(block));
    expect(unknown.map(({ page, line, language }) => `${page}:${line} ${language}`)).toEqual([]);
    expect(blocks.filter(isRun).length).toBeGreaterThan(40);
  });

  it('[DOC4] those that run do what their page says', { timeout: PATIENCE_MS }, async () => {
    const left = pages
      .filter((page) => only === undefined || page.includes(only))
      .filter((page) => blocksOf(page).some(isRun));
    const wrong: string[] = [];
    const work = async (): Promise<void> => {
      for (let page = left.shift(); page !== undefined; page = left.shift())
        wrong.push(...(await problemsOf(page)));
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    expect(wrong.join('\n\n')).toBe('');
  });
});

async function problemsOf(page: string): Promise<string[]> {
  const answered = await runBlocks(blocksOf(page).filter(isRun));
  return answered
    .filter(
      ({ failed, answer, printed }) =>
        failed || (printed !== undefined && !isAsShown(answer, printed)),
    )
    .map(({ block, typed, printed, answer }) => {
      const shown = printed === undefined ? 'exit code 0' : printed;
      return `${block.page}:${block.line}: $ ${typed}\nshown:\n${shown}\nprinted:\n${answer}`;
    });
}
