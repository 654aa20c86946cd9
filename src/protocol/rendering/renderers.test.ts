import { describe, expect, it } from 'vitest';
import { rendererNamed } from './renderers.ts';

describe('renderers', () => {
  it('[M31] write JSON as it is, or the output of a process in the words of coder', () => {
    expect(rendererNamed('json')?.({ met: ['<'] })).toBe('{"met":["<"]}\n');
    const process = { outcome: { kind: 'exit', code: 3 }, bytes: { total: 1 }, command: 'x' };
    expect(JSON.parse(rendererNamed('coder')?.({ text: '<', process }) ?? '')).toMatchObject({
      output: '<',
      exit_code: 3,
    });
    expect(rendererNamed('coder')?.({ text: '<', process })).toContain('"output":"\\u003c"');
  });

  it('[M31] are known by their own names only', () => {
    expect(['toString', '__proto__', 'constructor', 'cdr', ''].map(rendererNamed)).toEqual(
      Array.from({ length: 5 }, () => undefined),
    );
  });
});
