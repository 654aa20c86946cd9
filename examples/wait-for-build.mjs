// Waits for a build by what happens, not by asking again and again: its first warning, or its end, whatever comes first.
// Usage: node examples/wait-for-build.mjs [COMMAND]
import { connect } from 'holdfast';

const command =
  process.argv[2] ?? 'echo compiling; sleep 0.3; echo "warning: unused x"; sleep 0.3; echo linked';

const holdfast = await connect();
const build = await holdfast.start(command, { name: 'build', cwd: process.cwd() });

const warning = await build.waitForLog(/warning: .*/, { timeoutMs: 60_000 });
console.log(warning ? `first: ${warning.line}` : 'no warning so far');

const ended = await build.waitForExit();
const { text } = await build.output();
console.log(`ended with ${ended.exitCode}, ${text.split('\n').length - 1} lines`);

await build.remove();
await holdfast.close();
process.exitCode = ended.exitCode ?? 1;
