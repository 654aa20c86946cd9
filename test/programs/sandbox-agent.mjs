// An agent's program: begins a command in a sandbox for OpenAI agents, prints the stored state and the answer, and stays.
// Arguments: a home, the directory of the sandbox, the command.
import { holdfastSandboxClient } from '../../dist/adapters/openai-sandbox.js';
import { connect } from '../../dist/index.js';

const [, , home, directory, cmd] = process.argv;

/** As the framework's, as far as the adapter uses it. */
class Manifest {
  entries = {};
  users = [];
  groups = [];

  constructor(given) {
    Object.assign(this, given);
  }

  async resolveEnvironment() {
    return {};
  }
}

const holdfast = await connect({ home });
const client = holdfastSandboxClient(
  { Manifest, applyDiff: (text) => text },
  { holdfast, directory },
);
const session = await client.create();
const said = await session.execCommand({ cmd, yieldTimeMs: 1000, login: false });
const state = await client.serializeSessionState(session.state);
process.stdout.write(`${JSON.stringify({ said, state })}\n`);
setInterval(() => undefined, 60_000);
