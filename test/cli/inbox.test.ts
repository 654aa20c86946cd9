// `holdfast inbox`: what needs a person and what has ended, the same as in the dashboard.
import { expect, it } from 'vitest';
import { Place } from '../support/command-line.ts';
import { onCleanup } from '../support/hosts.ts';

it('[DB19] holdfast inbox lists what asks and what has ended, and marks it as done', async () => {
  const place = new Place();
  onCleanup(() => place.close());
  expect(await place.run('inbox')).toMatchObject({ code: 1, stdout: 'Nothing needs you.\n' });
  const failed = await place.finished('--name', 'broken', 'echo oops; exit 3');
  const asks = await place.background('--pty', '--name', 'asks', 'printf "sure?\\a"; sleep 1000');
  await place.run('wait', asks, '--for', 'text=sure?');
  const { result } = await place.json('inbox');
  expect(result).toMatchObject({
    needs: [{ id: asks, reason: 'asked', text: 'sure?' }],
    completions: [{ id: failed, outcome: { kind: 'exit', code: 3 } }],
  });
  const { stdout } = await place.run('inbox');
  expect(stdout.split('\n')[0]?.split('\t')).toMatchObject([
    asks,
    'asks',
    expect.anything(),
    'asks',
    'sure?',
  ]);
  await place.run('inbox', 'broken', '--done');
  expect(await place.json('inbox')).toMatchObject({ result: { completions: [] } });
  await place.run('inbox', '--done');
  expect((await place.run('inbox')).code).toBe(1);
});
