// A file system of one empty folder, for tests: answers until it is told to die, and then reads every request and answers
// none. Whoever asks it then cannot be killed. Needs root and /dev/fuse. Argument: the folder to mount it on. Says "ready",
// "dead" after a line on stdin, and "asked" at each request that it leaves unanswered. To be ended by SIGKILL.

import { openSync, read, writeSync } from 'node:fs';
import koffi from 'koffi';

const [ENOENT, ENOSYS] = [2, 38];
const [LOOKUP, FORGET, GETATTR, INIT, OPENDIR, READDIR, RELEASEDIR] = [1, 2, 3, 26, 27, 28, 29];
const [INTERRUPT, BATCH_FORGET] = [36, 42];
const HEADER_BYTES = 40;
const FOLDER_MODE = 0o40755;

const [folder] = process.argv.slice(2);
const device = openSync('/dev/fuse', 'r+');
const mount = koffi
  .load('libc.so.6')
  .func(
    'int mount(const char *source, const char *target, const char *type, ulong flags, const char *data)',
  );
const data = `fd=${device},rootmode=40000,user_id=0,group_id=0,allow_other`;
if (mount('dead-mount', folder, 'fuse', 0, data) !== 0) {
  console.log(`cannot mount: errno ${koffi.errno()}`);
  process.exit(1);
}

let dead = false;
process.stdin.once('data', () => {
  dead = true;
  console.log('dead');
});
console.log('ready');
next();

function next() {
  const request = Buffer.alloc(1024 * 1024);
  read(device, request, 0, request.length, null, (error, bytes) => {
    if (error) process.exit(0);
    handle(request.subarray(0, bytes));
    next();
  });
}

function handle(request) {
  const operation = request.readUInt32LE(4);
  if ([FORGET, BATCH_FORGET, INTERRUPT].includes(operation)) return;
  if (dead) {
    console.log('asked');
    return;
  }
  const { error = 0, body = Buffer.alloc(0) } = answerTo(operation, request);
  const head = Buffer.alloc(16);
  head.writeUInt32LE(head.length + body.length, 0);
  head.writeInt32LE(-error, 4);
  request.copy(head, 8, 8, 16);
  writeSync(device, Buffer.concat([head, body]));
}

function answerTo(operation, request) {
  if (operation === INIT) return { body: initial(request) };
  if (operation === GETATTR) return { body: attributes() };
  if (operation === OPENDIR) return { body: Buffer.alloc(16) };
  if (operation === READDIR || operation === RELEASEDIR) return {};
  return { error: operation === LOOKUP ? ENOENT : ENOSYS };
}

function initial(request) {
  const body = Buffer.alloc(64);
  body.writeUInt32LE(7, 0);
  body.writeUInt32LE(31, 4);
  body.writeUInt32LE(request.readUInt32LE(HEADER_BYTES + 8), 8);
  body.writeUInt32LE(4096, 20);
  body.writeUInt32LE(1, 24);
  return body;
}

/** Valid for no time: each look is a request. */
function attributes() {
  const body = Buffer.alloc(104);
  body.writeBigUInt64LE(1n, 16);
  body.writeUInt32LE(FOLDER_MODE, 76);
  body.writeUInt32LE(2, 80);
  return body;
}
