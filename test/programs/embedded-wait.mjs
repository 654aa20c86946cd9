// A program with a host of its own that waits for a runaway to end: nothing but the wait keeps it alive. Argument: a folder.
import { embed } from '../../dist/index.js';

const holdfast = await embed({ folder: process.argv[2] });
const handle = await holdfast.start('setsid sleep 0.5 >/dev/null 2>&1 & exit 0');
await handle.first([{ kind: 'closed' }]);
const met = await handle.first([{ kind: 'settled' }]);
process.stdout.write(met?.met === true ? 'settled\n' : 'nothing\n');
