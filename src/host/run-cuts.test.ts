// What real shells printed, byte by byte, with what was typed between: given to the runs in every cut, with looks at every
// one. ../../test/support/run-streams.json was recorded on Debian 12 (bash 5.2, dash 0.5, zsh 5.9, fish 3.6).
import { describe, expect, it } from 'vitest';
import { RunBench, tick } from '../../test/support/run-bench.ts';
import recorded from '../../test/support/run-streams.json' with { type: 'json' };
import type { RunResult } from '../protocol/run.ts';
import { ByteScanner } from './terminal/byte-scanner.ts';
import { MarkPattern } from './terminal/marks.ts';
import { Sentinel } from './terminal/sentinel.ts';

type Stream = (typeof recorded)[number];
type Step = { readonly out?: string; readonly typed?: string };

/** The state between the parts of a step: the shell runs, or it sleeps and has printed more than was read. */
type Meanwhile = 'awake' | 'unheard';

interface Replayed {
  readonly typed: string[];
  readonly shown: string;
  readonly results: Partial<RunResult>[];
}

async function replay(
  { argv, nonce, commands, steps }: Stream,
  cut: (text: string, at: number) => string[],
  meanwhile: Meanwhile,
): Promise<Replayed> {
  const edits = !/^(?:sh|dash)$/.test(argv[0] ?? '');
  const tokens = [...new Set(JSON.stringify(steps).match(/137hf[\w-]{6}/g))];
  let shown = '';
  const scanner = new ByteScanner((bytes) => {
    shown += bytes.toString('latin1');
    bench.offset += bytes.length;
    bench.runs.output(bytes);
  });
  const bench: RunBench = new RunBench({
    marks: nonce !== undefined,
    argv,
    echoes: () => !edits,
    arm: (reported, language) => {
      const sentinel = new Sentinel(reported, language, tokens.shift()?.slice(3));
      scanner.patterns.add(sentinel.string).add(sentinel.echo);
      return sentinel;
    },
    disarm: ({ string, echo }) => {
      scanner.patterns.delete(string);
      scanner.patterns.delete(echo);
    },
  });
  bench.edits = edits;
  if (nonce !== undefined)
    scanner.patterns.add(new MarkPattern(nonce, (mark) => bench.runs.mark(mark)));
  const rest = (rests: boolean): void => {
    bench.shellInFront(rests || meanwhile !== 'awake', argv);
    bench.unheard = !rests && meanwhile === 'unheard';
  };
  rest(false);

  const results: Partial<RunResult>[] = [];
  const asked = (async () => {
    for (const command of commands) {
      const { run, seq, endSeq, durationMs, ...result } = await bench.runs.run({
        id: 't',
        command,
      });
      expect([run, seq, endSeq ?? 0, durationMs].every((each) => each !== undefined)).toBe(true);
      results.push(result);
    }
  })();

  let [at, expected] = [0, 0];
  for (const { out, typed } of steps as Step[]) {
    if (typed !== undefined) {
      expected += 1;
      // At rest it is typed, if it was not before: a prompt may have been reported in the middle.
      for (let look = 0; look < 5000 && bench.typed.length < expected; look += 1) {
        await tick();
        bench.clock.advance(1);
      }
      expect(bench.typed).toHaveLength(expected);
      rest(false);
      continue;
    }
    for (const part of cut(out ?? '', at)) {
      scanner.push(Buffer.from(part, 'latin1'));
      await tick();
      bench.clock.advance(1);
    }
    at += out?.length ?? 0;
    rest(true);
  }
  for (let look = 0; look < 20; look += 1) {
    await tick();
    bench.clock.advance(50);
  }
  await asked;
  bench.runs.ended();
  expect(bench.clock.pending).toBe(0);
  return { typed: bench.typed, shown, results };
}

const whole = (text: string): string[] => [text];
const bytes = (text: string): string[] => Array.from(text);
const once =
  (place: number) =>
  (text: string, at: number): string[] =>
    place <= at || place >= at + text.length
      ? [text]
      : [text.slice(0, place - at), text.slice(place - at)];

describe('what a shell printed, however it is cut', () => {
  for (const stream of recorded) {
    it(`[TM123] tells the same ends in ${stream.argv.join(' ')}`, async () => {
      const reported = await replay(stream, whole, 'awake');
      expect(reported.results).toEqual(stream.results);
      expect(reported.typed).toEqual(
        (stream.steps as Step[]).flatMap(({ typed }) => (typed === undefined ? [] : [typed])),
      );
      // Nothing of ours is left in it.
      expect(reported.shown).not.toMatch(/\x1b_hf|133;[BCDEP];|137hf/); // oxlint-disable-line no-control-regex
      for (const meanwhile of ['awake', 'unheard'] as const) {
        expect(await replay(stream, bytes, meanwhile)).toEqual(reported);
        const length = (stream.steps as Step[]).reduce(
          (total, { out = '' }) => total + out.length,
          0,
        );
        for (let place = 1; place < length; place += 1)
          expect(await replay(stream, once(place), meanwhile), `cut at ${place}`).toEqual(reported);
      }
    });
  }
});
