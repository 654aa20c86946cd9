import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { Pipeline } from './pipeline.ts';

it('[SV22] a request learns that the next one waits for it, and of none that follows its answer', () => {
  const pipeline = new Pipeline(new PassThrough());
  const seen: string[] = [];
  pipeline.begin(() => seen.push('first'));
  pipeline.onNext(() => seen.push('next came'));
  pipeline.begin(() => seen.push('second'));
  expect(seen).toEqual(['first', 'next came']);
  pipeline.answered();
  pipeline.begin(() => seen.push('third'));
  expect(seen).toEqual(['first', 'next came', 'second']);
});
