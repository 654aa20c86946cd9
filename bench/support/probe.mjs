// Loaded into a keeper or a server by `--import`: tells its memory after a forced collection, on a socket of its own, and writes its
// CPU profile when it leaves. It knows nothing of that, and what it starts inherits nothing of it.

import { mkdirSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const {
  BENCH_PROBE: path,
  BENCH_PROFILE: profile,
  BENCH_PROFILE_NAME: name = 'keeper',
} = process.env;
delete process.env.BENCH_PROBE;
delete process.env.BENCH_PROFILE;
delete process.env.BENCH_PROFILE_NAME;
delete process.env.NODE_OPTIONS;
if (path !== undefined) {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    collect();
    collect();
    socket.end(JSON.stringify({ ...process.memoryUsage(), cpu: process.cpuUsage() }));
  });
  server.listen(path);
  server.unref();
}

// `--cpu-prof` is not allowed in NODE_OPTIONS.
if (profile !== undefined) {
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.setSamplingInterval', { interval: 200 });
  session.post('Profiler.start');
  process.once('exit', () => {
    session.post('Profiler.stop', (error, result) => {
      if (error) throw error;
      mkdirSync(profile, { recursive: true });
      writeFileSync(
        join(profile, `${name}-${process.pid}.cpuprofile`),
        JSON.stringify(result.profile),
      );
    });
  });
}
