import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import * as fc from '../../../test/support/properties.ts';
import { readShell } from './ampersand.ts';

/** Promoted to the background, and what is run then. */
const promoted: readonly (readonly [command: string, run: string])[] = [
  ['cmd &', 'cmd'],
  ['cmd&', 'cmd'],
  ['  cmd  &  ', '  cmd'],
  ['cmd1 && cmd2 &', 'cmd1 && cmd2'],
  ['a; b &', 'a; b'],
  ['a & b &', 'a & b'],
  ['npm start & # the server', 'npm start'],
  ['cmd & #', 'cmd'],
  ['cmd &\n', 'cmd'],
  ['cmd &\n# one\n  # two\n\n', 'cmd'],
  ['cmd 2>&1 &', 'cmd 2>&1'],
  ['cmd >log 2>&1 &', 'cmd >log 2>&1'],
  ['cmd &>log &', 'cmd &>log'],
  ['a | b &', 'a | b'],
  ['a |& b &', 'a |& b'],
  ['(cd x; run) &', '(cd x; run)'],
  ['{ a; b; } &', '{ a; b; }'],
  ['echo "a & b" &', 'echo "a & b"'],
  ["echo 'x' &", "echo 'x'"],
  ['echo $(date) &', 'echo $(date)'],
  ['echo $((1 & 3)) &', 'echo $((1 & 3))'],
  ['echo a\\&b &', 'echo a\\&b'],
  ['cat <<EOF &\nbody &\nEOF', 'cat <<EOF\nbody &\nEOF'],
  ['while :; do x; done &', 'while :; do x; done'],
  ['a \\\n  &', 'a'],
  ['touch a\\  &', 'touch a\\ '],
  ['cmd &\\\n', 'cmd'],
  ['cmd & \\\n \\\n# the server', 'cmd'],
  ['cat <<E & \\\n\nbody\nE', 'cat <<E\nbody\nE'],
  ['cat <<E&# all of it\nbody\nE', 'cat <<E # all of it\nbody\nE'],
];

/** Run as they are. */
const alone: readonly string[] = [
  'cmd',
  'cmd &&',
  'cmd |&',
  'cmd && other',
  'echo hi >&',
  'cmd >& file',
  'cmd &> file',
  'echo foo\\&',
  'echo "foo &"',
  "echo 'foo &'",
  'echo "unclosed &',
  "echo 'unclosed &",
  'echo $(sleep 5 &)',
  '(sleep 5 &)',
  '{ sleep 5 & }',
  'sleep 5 & wait',
  'sleep 5 & echo done',
  'cmd # not &',
  'cat <<EOF\nbody &\nEOF',
  "cat <<'E'\nx &",
  '&',
  ' & ',
  'cmd & &',
  'cmd ; &',
  'cmd\n&',
  'echo `sleep 1 &`',
  'echo ${x:-a &}',
  "echo $'a\\' &'",
  'echo $((2 & 1))',
  'if a; then b & fi',
  'case x in a) b & ;; esac',
  'echo $(case x in a) b & ;; esac)',
  '# comment &',
  'diff <(a &) <(b &)',
];

describe('the ampersand', () => {
  it(`[L1] is a wish for the background only at the very end: ${promoted.length + alone.length} commands`, () => {
    expect(promoted.map(([command]) => [command, readShell(command).promoted])).toEqual(promoted);
    expect(
      alone.flatMap((command) => {
        const found = readShell(command).promoted;
        return found === undefined ? [] : [[command, found]];
      }),
    ).toEqual([]);
  });

  it('[L1] what is run without it is still a command for the shell', () => {
    for (const [, run] of promoted.filter(([command]) => !/&>|\|&/.test(command)))
      expect(() => execFileSync('sh', ['-n', '-c', run], { stdio: 'pipe' })).not.toThrow();
  });

  it('[L1] any text is read without a failure, and what is promoted is all of it but its ampersand', () => {
    const words = `& && | ' " \` $( ) ( { } \${ $(( \\ # <<E E > < ; a case esac $'`.split(' ');
    const pieces = fc.constantFrom(' ', '\n', '\t', ...words);
    const squeezed = (text: string): string => text.replaceAll(/\\\n|\s/g, '');
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 30 }), (parts) => {
        const command = parts.join('');
        const { promoted: run } = readShell(command);
        if (run !== undefined) {
          const less = [...command.matchAll(/&/g)].map(({ index }) =>
            squeezed(command.slice(0, index) + command.slice(index + 1)),
          );
          expect(less.filter((text) => text.startsWith(squeezed(run)))).not.toEqual([]);
        }
      }),
      { numRuns: 2000 },
    );
  });

  it('[L2] a pipeline is seen where the exit code comes from, and nowhere else', () => {
    const ends = [
      'a | b',
      'a; b | c',
      'a && b | c | d',
      'a |& b',
      'a | b # x',
      'a | b;',
      'a | b &',
    ];
    const others = ['a', 'a | b; c', 'a | b && c', 'a || b', "echo '|'", 'x=$(a | b)', 'a | b\nc'];
    expect(ends.filter((command) => !readShell(command).pipeline)).toEqual([]);
    expect(others.filter((command) => readShell(command).pipeline)).toEqual([]);
  });
});
