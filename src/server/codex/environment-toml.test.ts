import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { selectToml, TomlProblem } from './environment-toml.ts';

const file = `
# a comment
model = "x" # another
"dotted.key".inner = 1
mcp_servers.early = { command = "e", args = [
  "a", # in between
  'b', ], }

[mcp_servers.a]
command = "a"
text = """
[mcp_servers.fake]
not = "a key" """
path = 'C:\\dir'
when = 1979-05-27 07:32:00Z

[ mcp_servers . "b.c" ]
url = "http://x"

[[list]]
n = 1
[[list]]
n = 2

[empty]
[mcp_servers.none]
`;

describe('parts of a TOML file', () => {
  it('[CF16] what is below a path is passed on as it was written', () => {
    expect(selectToml(file, [['mcp_servers']])).toBe(
      [
        'mcp_servers.early = { command = "e", args = [\n  "a", # in between\n  \'b\', ], }\n',
        '[mcp_servers.a]\ncommand = "a"\ntext = """\n[mcp_servers.fake]\nnot = "a key" """\npath = \'C:\\dir\'\nwhen = 1979-05-27 07:32:00Z\n',
        '[ mcp_servers . "b.c" ]\nurl = "http://x"\n',
        '[mcp_servers.none]\n',
      ].join('\n'),
    );
  });

  it('[CF16] single keys, quoted keys, lists of tables, and a path that ends inside of a value', () => {
    expect(selectToml(file, [['mcp_servers', 'a', 'command']])).toBe(
      '[mcp_servers.a]\ncommand = "a"\n',
    );
    expect(selectToml(file, [['dotted.key']])).toBe('"dotted.key".inner = 1\n');
    expect(selectToml(file, [['mcp_servers', 'b.c']])).toBe(
      '[ mcp_servers . "b.c" ]\nurl = "http://x"\n',
    );
    expect(selectToml(file, [['list']])).toBe('[[list]]\nn = 1\n\n[[list]]\nn = 2\n');
    expect(selectToml(file, [['model', 'deeper']])).toBe('model = "x"\n');
    expect(selectToml(file, [['model'], ['list']])).toBe(
      'model = "x"\n\n[[list]]\nn = 1\n\n[[list]]\nn = 2\n',
    );
    expect(selectToml('"\\u0061\\t" = 1\r\n', [['a\t']])).toBe('"\\u0061\\t" = 1\n');
    for (const none of [['nope'], ['mcp'], ['mcp_servers', 'fake'], ['']])
      expect(selectToml(file, [none])).toBeUndefined();
    expect(selectToml('', [['a']])).toBeUndefined();
  });

  it('[CF16] what is no TOML is told with its place', () => {
    const problems: [string, string][] = [
      ['bad = = \n', '1:7: expected a value'],
      ['a = 1\nb = 2 c\n', '2:7: expected the end of the line'],
      ['[a\nb = 1', '1:3: expected `]`'],
      ['a = [1 2]', '1:8: expected `,` or `]`'],
      ['a = "open\n', '1:5: expected a value'],
      ['= 1', '1:1: expected a key'],
      ['a 1', '1:3: expected `=`'],
      [`a = ${'['.repeat(100)}`, '1:70: values are nested too deeply'],
    ];
    for (const [text, message] of problems)
      expect(() => selectToml(text, [['a']])).toThrow(message);
  });

  it('[CF16] any text is read or refused, and never holds anybody up', () => {
    const bits = fc.constantFrom(
      'a',
      '=',
      '[',
      ']',
      '{',
      '}',
      '"',
      "'",
      '"""',
      '\\',
      '\n',
      '.',
      ',',
      '#',
      ' ',
      '1',
    );
    fc.assert(
      fc.property(fc.array(bits, { maxLength: 200 }), (parts) => {
        try {
          selectToml(parts.join(''), [['a']]);
        } catch (error) {
          expect(error).toBeInstanceOf(TomlProblem);
        }
      }),
      { numRuns: 500 },
    );
    const started = performance.now();
    for (const text of [
      `a = ${'"""'.repeat(50_000)}`,
      `a = """${'"\\'.repeat(100_000)}`,
      '#'.repeat(500_000),
    ])
      try {
        selectToml(text, [['a']]);
      } catch (error) {
        expect(error).toBeInstanceOf(TomlProblem);
      }
    expect(performance.now() - started).toBeLessThan(1000);
  });
});
