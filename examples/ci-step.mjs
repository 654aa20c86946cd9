// A step of CI that survives the death of its runner: started again with the same key, it attaches to the step that runs or has run,
// shows its output from the beginning, and ends with its exit code. Nothing runs twice.
// Usage: node examples/ci-step.mjs KEY COMMAND
import { connect } from 'holdfast';

const [key, command] = process.argv.slice(2);
if (!key || !command) throw new Error('usage: node ci-step.mjs KEY COMMAND');

const holdfast = await connect();
const step = await holdfast.start(command, { key, streams: 'separate', cwd: process.cwd() });

for await (const { stream, bytes, missedBytes } of step.logs({ follow: true })) {
  if (missedBytes > 0) process.stderr.write(`[${missedBytes} bytes are no longer stored]\n`);
  process[stream === 'stderr' ? 'stderr' : 'stdout'].write(bytes);
}

const { exitCode, outcome } = await step.waitForExit();
if (exitCode === undefined) process.stderr.write(`[the step ended by ${outcome.kind}]\n`);
await holdfast.close();
process.exitCode = exitCode ?? 1;
