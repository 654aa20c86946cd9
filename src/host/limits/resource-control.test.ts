// A start in a cgroup that another program removes.

import { existsSync, readdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';

import { temporaryFolder } from '../../../test/support/hosts.ts';
import { Nursery, planOf } from '../../../test/support/recorder.ts';
import { systemClock } from '../../base/clock.ts';
import type { LaunchPlan } from '../../protocol/process.ts';
import { ownGroup } from '../../system/confine/cgroups.ts';
import type { Child } from '../child/child.ts';
import { startPipeChild } from '../child/pipe-child.ts';
import { ResourceControl } from './resource-control.ts';

let nursery: Nursery;
let control: ResourceControl;
beforeEach(() => {
  nursery = new Nursery();
  control = new ResourceControl({
    folder: temporaryFolder(),
    clock: systemClock,
    posix: nursery.posix,
    hidden: [],
    usesGroups: true,
    start: (plan) => startPipeChild(plan, nursery.tools),
  });
});
afterEach(async () => {
  await nursery.endAll();
  control.close();
});

/** Starts a program and removes its group several times, always between opening and use. */
async function startRemoved(serial: string, times: number) {
  let left = times;
  const start = async (plan: LaunchPlan): Promise<Child> => {
    if (left > 0) rmdirSync(groupOf(serial));
    left -= 1;
    return (await nursery.start(startPipeChild, plan)).child;
  };
  return control.confine({ plan: planOf(['/bin/sleep', '600']), serial }, start);
}

function groupOf(serial: string): string {
  const own = ownGroup();
  if (typeof own !== 'string') throw new Error(own.why);
  const groups = readdirSync(own).map((name) => join(own, name, `hf-${serial}`));
  return groups.find((folder) => existsSync(folder)) ?? 'no group';
}

const hasGroups = typeof ownGroup() === 'string';
if (!hasGroups) console.warn('left out: removed cgroups, because there are none here');

test.skipIf(!hasGroups)(
  '[CT13] a removed group is made again, and the program is in it',
  async () => {
    const { child } = await startRemoved('removed-once', 1);
    expect(control.members('removed-once')).toEqual([child.pid]);
  },
);

test.skipIf(!hasGroups)('[CT13] one that is removed again is named in the error', async () => {
  await expect(startRemoved('removed-twice', 2)).rejects.toMatchObject({
    code: 'spawn_failed',
    message: 'The cgroup of the process was removed by another program.',
  });
});
