// Signals by name and to everybody, and looks into the keeper: what a command of the same user may do by accident. All of it
// happens in a pid namespace of its own: nothing else of the machine can be reached from there.

import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { inNamespace, namespaces, NOBODY } from '../support/namespaces.ts';

const tools = ['pkill', 'killall', 'setpriv'].every(
  (tool) => spawnSync('which', [tool]).status === 0,
);
describe.skipIf(!namespaces || !tools)('in a namespace of its own', () => {
  it('[K80] a command that signals "node" or "holdfast" by name ends neither keeper nor server nor other processes', async () => {
    const text = await inNamespace(`
      hf() { "$NODE" "$MAIN" "$@"; }
      hf run --background --owner alice --name other 'sleep 1000' > /dev/null
      hf restart > /dev/null
      before=$(cat $HOLDFAST_HOME/keeper.lock $HOLDFAST_HOME/server.lock)
      # The client ends by the signal, too, as it is a node program.
      for command in 'pkill node' 'killall node' 'pkill -f node' 'pkill -f holdfast' 'pkill -9 -f node' 'pkill -KILL holdfast'; do
        hf run --owner bob --keep "$command" > /dev/null 2>&1
      done
      [ "$before" = "$(cat $HOLDFAST_HOME/keeper.lock $HOLDFAST_HOME/server.lock)" ] && echo same
      hf ps --owner alice | grep -c running
      hf doctor | grep -cE '^ok .*, pid [0-9]+'
    `);
    expect(text).toBe('same\n1\n2\n');
  });

  it.skipIf(process.getuid?.() !== 0)(
    '[K80] a command of another user that signals everybody it can ends nobody of the keeper',
    async () => {
      const text = await inNamespace(`
        hf() { "$NODE" "$MAIN" "$@"; }
        hf run --background --owner alice --name other 'sleep 1000' > /dev/null
        hf run --owner bob 'setpriv --reuid=65534 --clear-groups sh -c "kill -TERM -1; echo here"' 2>&1
        hf ps --owner alice | grep -c running
      `);
      expect(text).toBe('here\n1\n');
    },
  );

  it('[K81] a program of the same user cannot trace the keeper or read its memory, environment and descriptors', async () => {
    const user = process.getuid?.() === 0 ? NOBODY : undefined;
    const text = await inNamespace(
      `
      hf() { "$NODE" "$MAIN" "$@"; }
      hf run 'for name in environ mem maps; do cat /proc/$PPID/$name > /dev/null 2>&1 && echo $name; done; for name in exe cwd root fd/2; do readlink /proc/$PPID/$name && echo $name; done; ls /proc/$PPID/fd 2>/dev/null | grep -q . && echo fd; cat /proc/$PPID/comm'
      hf run 'exit 4'; echo $?
    `,
      user,
    );
    expect(text).toBe('hf-keeper\n4\n');
  });

  it('[K86] a command finds no token in its environment, its descriptors or the files of the home, and cannot attach to the keeper', async () => {
    const user = process.getuid?.() === 0 ? NOBODY : undefined;
    // PTRACE_ATTACH is 16; EPERM is 1.
    const attach = `import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
print('attach', libc.ptrace(16, int(sys.argv[1]), 0, 0), ctypes.get_errno())`;
    const text = await inNamespace(
      `
      hf() { "$NODE" "$MAIN" "$@"; }
      cat > attach.py <<'END'
${attach}
END
      token=$(hf token admin)
      hf restart > /dev/null
      printf '%s' "$token" > secret
      hf run --owner alice 'env | grep -c hf_; ls /proc/self/fd | tr "\\n" " "; grep -rlF -f secret "'$HOLDFAST_HOME'" | wc -l; ls "'$HOLDFAST_HOME'" | grep -cx token; python3 attach.py $PPID; kill -0 $PPID && echo can be signalled by number'
    `,
      user,
    );
    // ls itself opens the folder that it lists.
    expect(text).toBe('0\n0 1 2 3 0\n0\nattach -1 1\ncan be signalled by number\n');
  });
});
