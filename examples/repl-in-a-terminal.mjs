// Drives a REPL as a person would: types, waits for the screen, and takes a picture of it.
// Usage: node examples/repl-in-a-terminal.mjs [PICTURE.png]
import { writeFile } from 'node:fs/promises';
import { connect } from 'holdfast';

const holdfast = await connect();
const terminal = await holdfast.terminal({
  argv: ['node', '--interactive'],
  size: { cols: 60, rows: 12 },
  lease: true,
});

await terminal.waitForScreen({ regex: String.raw`\n>` }, { timeoutMs: 60_000 });
await terminal.type('[3, 1, 2].toSorted().join("-")');
await terminal.keys('Enter');
// The REPL shows a preview while one types: the result is the line before the next prompt.
await terminal.waitForScreen({ regex: String.raw`\n'1-2-3'\n>` }, { timeoutMs: 60_000 });

const { text } = await terminal.screen();
console.log(text.trimEnd());
if (process.argv[2]) await writeFile(process.argv[2], await terminal.screenshot());

await terminal.close();
await holdfast.close();
