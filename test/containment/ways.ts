// Ways by which a command may try to reach the admin, the keeper, the server or a process of another owner. Each prints REACHED or
// the SECRET of a file in the home if it leads somewhere. $H is the home, $K the keeper, $S the server, $P its port and $B a process of bob, all
// of them numbers; `hf` is the command line.

const node = process.execPath;
const connect = (socket: string): string =>
  `${node} -e "require('net').connect('$H/${socket}').on('connect', () => { console.log('REACHED'); process.exit() }).on('error', () => {})"`;
/** PTRACE_SEIZE, which does not stop the program; it is released when perl ends. */
const attach = (pid: string): string =>
  `perl -e 'exit !(syscall(${process.arch === 'arm64' ? 117 : 101}, 0x4206, 0 + ${pid}, 0, 0) == 0)' && echo REACHED`;
/** Any byte: no text is expected, as in a key. */
const reading = (path: string): string => `[ "$(head -c 1 ${path} | wc -c)" = 1 ] && echo REACHED`;
const listing = (folder: string): string => `ls -A ${folder} | grep -q . && echo REACHED`;

export const ways: readonly (readonly [string, string])[] = [
  ['a file of the home', 'cat $H/secret'],
  ['the hashes of tokens', reading('$H/tokens.json')],
  ['changing the tokens', 'test -w $H/tokens.json && echo REACHED'],
  ['the names of files in the home', listing('$H')],
  ['journals', 'cat $H/journals/* | grep -qa "of bob" && echo REACHED'],
  ['completions', 'cat $H/feed/* | grep -qa "of bob" && echo REACHED'],
  ['the key of fingerprints', reading('$H/fingerprint.key')],
  ['the log of the keeper', reading('$H/keeper.log')],
  ['the number of the keeper in its lock', reading('$H/keeper.lock')],
  ['a symbolic link to the home', 'ln -s $H link; cat link/secret'],
  ['a hard link to a file of the home', 'ln $H/secret linked && cat linked'],
  ['connecting to the socket of the keeper', connect('keeper.sock')],
  ['connecting to the socket of the server', connect('server.sock')],
  [
    'processes of bob by the command line',
    'hf ps --owner bob --home $H | grep -q sleep && echo REACHED',
  ],
  [
    'processes of everybody by the command line',
    'hf ps --home $H | grep -q "of bob" && echo REACHED',
  ],
  ['a start as bob by the command line', 'hf run --owner bob --home $H "echo REACHED"'],
  [
    'a token by the command line',
    'hf token create --for bob --home $H | grep -q hf_ && echo REACHED',
  ],
  ['the admin token by the command line', 'hf token admin --home $H | grep -q hf_ && echo REACHED'],
  ['the end of the keeper by the command line', 'hf shutdown --home $H && echo REACHED'],
  [
    'the port of the server, without a token',
    'curl -sf http://127.0.0.1:$P/v1/processes && echo REACHED',
  ],
  ['a signal to the keeper', 'kill -0 $K && echo REACHED'],
  ['a signal to the server', 'kill -0 $S && echo REACHED'],
  ['a signal to a process of bob', 'kill -0 $B && echo REACHED'],
  ['tracing the keeper', attach('$ENV{K}')],
  ['tracing the server', attach('$ENV{S}')],
  ['tracing a process of bob', attach('$ENV{B}')],
  ['the environment of the keeper', reading('/proc/$K/environ')],
  ['the memory map of the keeper', reading('/proc/$K/maps')],
  ['the descriptors of the keeper', listing('/proc/$K/fd')],
  ['the root folder of the keeper', 'cat /proc/$K/root$H/secret'],
  ['the environment of the server', reading('/proc/$S/environ')],
  ['the root folder of the server', 'cat /proc/$S/root$H/secret'],
  ['the environment of a process of bob', reading('/proc/$B/environ')],
  ['the command of a process of bob', reading('/proc/$B/cmdline')],
  ['the terminal of bob', 'test -w $T && echo REACHED'],
  [
    'the resource limits of the keeper, such as core dumps',
    'prlimit --pid $K --core=0 && echo REACHED',
  ],
  ['the program for core dumps', 'test -w /proc/sys/kernel/core_pattern && echo REACHED'],
  ['inherited descriptors', 'ls -l /proc/self/fd | grep -E "$H|socket:" && echo REACHED'],
  [
    'the environment of the command',
    'env | grep -E "^HOLDFAST_(HOME|TOKEN|URL)=|hf_" && echo REACHED',
  ],
  [
    'ending all in the cgroup of bob',
    'find /sys/fs/cgroup -path "*holdfast*" -name cgroup.kill -writable | grep -q . && echo REACHED',
  ],
  [
    'leaving its cgroup',
    'find /sys/fs/cgroup -name cgroup.procs -writable | grep -q . && echo REACHED',
  ],
  ['uncovering the home', 'umount -l $H; cat $H/secret'],
  ['a namespace of its own', 'unshare -Urm sh -c "umount -l $H; cat $H/secret"'],
];
