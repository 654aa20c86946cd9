// Connects to the keeper of a home, starting it if need be with further arguments, and prints its pid.
import { connectKeeper } from '../../dist/index.js';

const link = await connectKeeper({
  home: process.argv[2],
  env: process.env,
  keeperArgs: ['--idle-ms', '60000', ...process.argv.slice(3)],
});
process.stdout.write(`${link.keeper.pid}\n`);
await link.close();
