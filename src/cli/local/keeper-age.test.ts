import { expect, it } from 'vitest';
import { olderBuild } from './keeper-age.ts';

it('[C36] a keeper that was started before this build came here is of an older one', () => {
  expect(olderBuild(0)).toBeUndefined();
  expect(olderBuild(Date.now())).toContain('an older build than this command');
});
