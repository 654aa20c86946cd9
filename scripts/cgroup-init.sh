#!/bin/sh
# Process 1 of the machine that scripts/test-cgroup.mjs boots: mounts what the tests need, runs them, and turns the machine off.
# The root is the folder tree of the real machine, so everything that is written goes to a file system in memory.
export PATH="$HF_PATH" HOME=/run/home TMPDIR=/run/tmp
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t cgroup2 none /sys/fs/cgroup
mkdir -p /dev/pts /dev/shm
mount -t devpts -o ptmxmode=666 pts /dev/pts
mount -t tmpfs tmp /dev/shm
mount -t tmpfs tmp /run
ln -sf pts/ptmx /dev/ptmx
ln -sf /proc/self/fd /dev/fd
mkdir "$HOME" "$TMPDIR"
chmod 1777 "$TMPDIR"
ip link set lo up
# Nobody here reads the dumps of hundreds of ended programs.
ulimit -c 0
cd "$HF_ROOT" || echo 1 > "$HF_STATUS"
# Words have no spaces: the kernel's command line is split at them.
(
  # shellcheck disable=SC2086
  "$HF_NODE" node_modules/vitest/vitest.mjs run --no-file-parallelism --reporter=verbose $(echo "$HF_TESTS" | tr , ' ') 2>&1
  echo $? > "$HF_STATUS"
) | cat
echo o > /proc/sysrq-trigger
# The machine goes off meanwhile; if process 1 ended first, the kernel would panic.
sleep 60
