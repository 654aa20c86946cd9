// An agent loop: a model is given the tools, chooses calls, and gets the answers, until it says something without calling a tool.
// The model here is a script, so that this runs without a key; `ask` is what you replace.
import { anthropicTools, connect, Toolbox, toolFunctions } from 'holdfast';

const holdfast = await connect();
const tools = toolFunctions(new Toolbox({ connection: holdfast.api, maxOutputBytes: 16_384 }));

const messages = [{ role: 'user', content: 'Run the tests and tell me what fails.' }];
for (let turn = 0; turn < 10; turn += 1) {
  const answer = await ask({ tools: anthropicTools(), messages });
  messages.push({ role: 'assistant', content: answer });
  const calls = answer.filter(({ type }) => type === 'tool_use');
  if (calls.length === 0) {
    console.log(answer[0].text);
    break;
  }
  const results = await Promise.all(
    calls.map(async ({ id, name, input }) => {
      // With its id a call runs once, also if this loop is restarted and says it again.
      const result = await tools[name](input, { callId: id });
      console.log(`${name} ${JSON.stringify(input)}`);
      return { type: 'tool_result', tool_use_id: id, content: JSON.stringify(result) };
    }),
  );
  messages.push({ role: 'user', content: results });
}
await holdfast.close();

/** Stands for a model: starts the tests in the background, waits for them, searches their output. */
async function ask({ messages: soFar }) {
  const last = soFar.at(-1).content;
  const result = Array.isArray(last) ? JSON.parse(last[0].content) : {};
  const use = (name, input) => [
    { type: 'tool_use', id: `call-${process.pid}-${soFar.length}`, name, input },
  ];
  switch (soFar.length) {
    case 1: {
      const command = 'sleep 0.3; seq -f "ok %g" 1 500; echo "not ok 501 login"; exit 1';
      return use('execute', { command, run_in_background: true });
    }
    case 3:
      return use('process_wait', { process_ids: [result.background_process_id] });
    case 5:
      return use('process_search', {
        process_id: result.processes[0].process_id,
        pattern: 'not ok',
      });
    default:
      return [
        {
          type: 'text',
          text: `One test fails: ${JSON.stringify(result).match(/not ok[^"\\]*/)[0]}`,
        },
      ];
  }
}
