// A program with a leased process, a leased terminal and one without a lease; prints their ids and stays. Argument: a home.
import { connect } from '../../dist/index.js';

const holdfast = await connect({ home: process.argv[2], leaseMs: 3000 });
const process_ = await holdfast.start('sleep 600', { lease: true });
const terminal = await holdfast.terminal({ lease: true });
const free = await holdfast.start('sleep 600');
const ids = { process: process_.id, terminal: terminal.id, free: free.id };
process.stdout.write(`${JSON.stringify(ids)}\n`);
setInterval(() => undefined, 60_000);
