// `holdfast demo`

import { VERSION } from '../../base/version.ts';
import type { Caller } from '../caller.ts';
import type { Answer, Command } from '../arguments/command.ts';
import { Narrator } from '../output/narrator.ts';
import { outcomeWords } from '../output/outcome.ts';
import { selfCommand } from '../surroundings.ts';
import { formatDuration, plural } from '../arguments/units.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'demo',
  usage: '',
  summary: summaries.demo,
  examples: ['holdfast demo'],
  options: {},
  read({ words, caller, out }) {
    words.expect();
    return async (): Promise<Answer> => {
      const say = new Narrator(out);
      const host = await caller.host();
      await say.line(
        `Holdfast ${VERSION} starts processes and stores their output and exit codes.`,
      );
      await say.part('A keeper runs in the background');
      await say.line(`Its pid is ${host.keeper.pid}. It stores everything under ${caller.home}.`);
      await say.line('It outlives this command, and exits by itself when it has no processes.');
      const first = await startAndWait(caller, say);
      const second = await endEscapee(caller, say);
      await suggest(caller, say, first.id);
      return { result: { keeper: host.keeper.pid, processes: [first, second] } };
    };
  },
};

const STEPS =
  'echo "step 1 of 3: fetching"; sleep 0.2; echo "step 2 of 3: ready"; sleep 0.2; echo "step 3 of 3: no disk" >&2; exit 3';

async function startAndWait(
  caller: Caller,
  say: Narrator,
): Promise<{ id: string; outcome: unknown }> {
  const host = await caller.host();
  await say.part('Start a process and wait for it, without polling');
  const { process } = await host.start(caller.name, { command: STEPS, name: 'demo' });
  const { id, owner } = process;
  await say.line(`Started ${id.slice(0, 8)}: three steps; the last one fails.`);
  const began = performance.now();
  const since = (): string => formatDuration(performance.now() - began);
  const ready = await host.wait(owner, { waits: [{ id, for: [{ kind: 'text', text: 'ready' }] }] });
  await say.line(`After ${since()} it printed the expected text:  ${ready.met[0]?.line ?? ''}`);
  const exit = await host.wait(owner, { waits: [{ id, for: [{ kind: 'closed' }] }] });
  const outcome = exit.met[0]?.process.outcome;
  await say.line(`After ${since()} it exited:  ${outcome ? outcomeWords(outcome) : 'unknown'}`);
  const { text } = await host.text(owner, { id });
  await say.line('All its output is stored, stdout and stderr in their true order:');
  for (const line of text.trimEnd().split('\n')) await say.line(`  | ${line}`);
  return { id, outcome };
}

/** `setsid` moves the child into a session of its own, where a signal to the group does not reach it. */
const RUNAWAY = `trap '' TERM; setsid sh -c 'echo "runaway $$"; exec sleep 300' & sleep 300`;

async function endEscapee(
  caller: Caller,
  say: Narrator,
): Promise<{ id: string; outcome: unknown }> {
  const host = await caller.host();
  await say.part('Stop a process that ignores SIGTERM and whose child left its group');
  const { process } = await host.start(caller.name, { command: RUNAWAY, name: 'demo' });
  const { id, owner } = process;
  const waits = [{ id, for: [{ kind: 'pattern' as const, pattern: 'runaway (\\d+)' }] }];
  const { met } = await host.wait(owner, { waits, timeoutMs: 2000 });
  await say.line(
    `Started ${id.slice(0, 8)}, pid ${process.pid}; ${met[0]?.match ?? 'its child'} left its group with setsid.`,
  );
  const ended = await host.signal(owner, {
    id,
    signal: 'terminate',
    by: caller.name,
    graceMs: 300,
  });
  const { outcome } = await host.get(owner, { id });
  const left =
    ended.survivors.length === 0
      ? 'nothing is left of it'
      : `${plural(ended.survivors.length, 'process', 'processes')} survived`;
  const killed = ended.escalated ? 'TERM, a grace of 300ms, KILL' : 'TERM';
  await say.line(`Ended by ${killed}: ${outcome ? outcomeWords(outcome) : 'unknown'}.`);
  await say.line(
    `${plural(ended.signalled.length, 'process', 'processes')} signalled, ${ended.escapees.length} of them outside its group; ${left}.`,
  );
  return { id, outcome };
}

async function suggest(caller: Caller, say: Narrator, id: string): Promise<void> {
  const here = selfCommand(caller.env);
  await say.part('Try next');
  await say.line(`${here} run 'for i in 1 2 3; do echo line $i; sleep 1; done; exit 4'`);
  await say.line(`${here} ps --all`);
  await say.line(`${here} logs ${id.slice(0, 8)}`);
  await say.end();
}
