import * as fc from '../../../../test/support/properties.ts';
import { parse } from 'smol-toml';
import { describe, expect, it } from 'vitest';
import { selectToml, TomlProblem } from './toml.ts';

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

/** What a reader of the selected part sees. */
async function selected(...paths: string[][]): Promise<unknown> {
  const text = await selectToml(file, paths);
  return text === undefined ? undefined : parse(text);
}

describe('parts of a TOML file', () => {
  it('[CF16] what is below a path is passed on with its values', async () => {
    const { mcp_servers: servers } = parse(file);
    expect(await selected(['mcp_servers'])).toEqual({ mcp_servers: servers });
    expect(servers).toMatchObject({ a: { path: 'C:\\dir' }, 'b.c': { url: 'http://x' }, none: {} });
  });

  it('[CF16] single keys, quoted keys, lists of tables, and a path that ends inside of a value', async () => {
    expect(await selected(['mcp_servers', 'a', 'command'])).toEqual({
      mcp_servers: { a: { command: 'a' } },
    });
    expect(await selected(['dotted.key'])).toEqual({ 'dotted.key': { inner: 1 } });
    expect(await selected(['mcp_servers', 'b.c'])).toEqual({
      mcp_servers: { 'b.c': { url: 'http://x' } },
    });
    expect(await selected(['list'])).toEqual({ list: [{ n: 1 }, { n: 2 }] });
    expect(await selected(['model', 'deeper'])).toEqual({ model: 'x' });
    expect(await selected(['model'], ['mcp_servers', 'a'], ['mcp_servers', 'a', 'path'])).toEqual({
      model: 'x',
      mcp_servers: { a: expect.objectContaining({ command: 'a' }) as unknown },
    });
    for (const none of [['nope'], ['mcp'], ['mcp_servers', 'fake'], ['']])
      expect(await selected(none)).toBeUndefined();
    expect(await selectToml('', [['a']])).toBeUndefined();
    expect(await selectToml('[__proto__]\nx = 1\n', [['__proto__', 'x']])).toBe(
      '[__proto__]\nx = 1\n',
    );
  });

  it('[CF16] a number stays whole or broken, and as large as it was', async () => {
    const text = 'a = 1\nb = 1.0\nc = 9223372036854775807\n';
    expect(await selectToml(text, [['a'], ['b'], ['c']])).toBe(text);
  });

  it('[CF16] tables may be written in pieces, and one key only once', async () => {
    const pieces = '[a.b]\nx = 1\n[c]\n[a]\ny = 2\n';
    expect(parse((await selectToml(pieces, [['a']])) ?? '')).toEqual({ a: { b: { x: 1 }, y: 2 } });
    for (const twice of ['a = 1\na = 2\n', '[a]\n[a]\n'])
      await expect(selectToml(twice, [['a']])).rejects.toThrow(TomlProblem);
  });

  it('[CF16] invalid TOML is reported with its position', async () => {
    const problems: [string, RegExp][] = [
      ['bad = = \n', /^1:7: /],
      ['a = 1\nb = 2 c\n', /^2:/],
      ['[a\nb = 1', /^1:/],
      ['a = "open\n', /^1:10: /],
      ['= 1', /^1:1: /],
      [`a = ${'['.repeat(100)}`, /^1:69: .*nested/],
      [`[${'a.'.repeat(1000)}b]`, /^1:1: .*nested/],
    ];
    for (const [text, message] of problems)
      await expect(selectToml(text, [['a']])).rejects.toThrow(message);
  });

  it('[CF16] any text is read or refused, quickly', async () => {
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
    await fc.assert(
      fc.asyncProperty(fc.array(bits, { maxLength: 200 }), async (parts) => {
        try {
          await selectToml(parts.join(''), [['a']]);
        } catch (error) {
          expect(error).toBeInstanceOf(TomlProblem);
        }
      }),
      { numRuns: 500 },
    );
    for (const text of [
      `a = ${'"""'.repeat(50_000)}`,
      `a = """${'"\\'.repeat(100_000)}`,
      '#'.repeat(500_000),
    ])
      try {
        await selectToml(text, [['a']]);
      } catch (error) {
        expect(error).toBeInstanceOf(TomlProblem);
      }
  });
});
