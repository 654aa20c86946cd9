// System calls about limits and scheduling of this program.

import type { Binding } from './posix-library.ts';

export function bindLimits({ failing }: Binding) {
  const getrlimit = failing('int getrlimit(int resource, void *limits)');
  const RLIMIT_NOFILE = 7;
  const limits = new BigUint64Array(2);

  return {
    /** One more than the highest possible descriptor. */
    descriptorLimit(): number {
      getrlimit(RLIMIT_NOFILE, limits);
      return Number(limits[0]);
    },
  };
}

export function bindScheduling({ failing }: Binding) {
  const getScheduler = failing('int sched_getscheduler(int thread)');
  const setScheduler = failing('int sched_setscheduler(int thread, int policy, void *parameters)');
  const setpriority = failing('int setpriority(int which, unsigned int who, int nice)');
  const PRIO_PGRP = 1;
  const [SCHED_OTHER, SCHED_RESET_ON_FORK] = [0, 0x40000000];
  const parameters = new Int32Array(1);

  return {
    /** For every process of the group. */
    setGroupPriority: (group: number, nice: number): void =>
      void setpriority(PRIO_PGRP, group, nice),
    /** The default policy: neither real-time nor batch nor idle. */
    isUsualPolicy: (thread: number): boolean => getScheduler(thread) === SCHED_OTHER,
    /** Threads and programs that this thread starts do not inherit a raised priority. */
    resetPriorityOnFork(thread: number): void {
      setScheduler(thread, SCHED_OTHER | SCHED_RESET_ON_FORK, parameters);
    },
  };
}
