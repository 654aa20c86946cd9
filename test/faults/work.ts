// One round of everything that a keeper does for a caller, and what is wrong with its answers. Any call may be refused with a
// code of the error table; nothing may be told that is not so.

import type { KeeperLink } from '../../src/keeper/link.ts';
import { openLink } from '../../src/keeper/link.ts';
import { HoldfastError } from '../../src/protocol/errors.ts';
import type { HostApi } from '../../src/protocol/host-api.ts';
import type { Outcome } from '../../src/protocol/process.ts';
import type { StartSpec } from '../../src/protocol/operations.ts';
import { decodeRecords } from '../../src/protocol/record.ts';
import { OWNER } from '../support/hosts.ts';

/** Far beyond what any of these calls takes on a busy machine: who has not answered by then never will. */
const NO_ANSWER_MS = 60_000;

let rounds = 0;

/** A run whose beginning or end was not seen goes on for as long as this. */
const RUN_MS = 5_000;

export interface Round {
  readonly number: number;
  /** What is wrong, each with the step it was seen in. */
  readonly wrong: string[];
  /** Codes that calls were refused with, by how often. */
  readonly refused: Map<string, number>;
}

export function newRound(): Round {
  rounds += 1;
  return { number: rounds, wrong: [], refused: new Map() };
}

export interface Work {
  readonly link: KeeperLink;
  readonly socket: string;
  readonly sameLinks: boolean;
  /** Without what takes longest. */
  readonly short: boolean;
}

export async function doWork(
  { link, socket, sameLinks, short }: Work,
  round: Round,
): Promise<void> {
  const steps: Record<string, () => Promise<void>> = {
    pipes: () => pipes(link, round),
    terminal: () => terminal(link, round),
    input: () => input(link, round),
    daemon: () => daemon(link, round),
    killed: () => killed(link, round),
    listed: () => listed(link, round),
    ...(!sameLinks && {
      linked: async () => {
        for (let turn = 0; turn < (short ? 1 : 5); turn += 1) await linked(socket, round);
      },
    }),
    ...(!short && {
      large: () => large(link, round),
      shell: () => shell(link, round),
      leased: () => leased(link, round),
    }),
  };
  await Promise.all(
    Object.entries(steps).map(async ([name, step]) => {
      try {
        await step();
      } catch (error) {
        if (!(error instanceof Refused))
          round.wrong.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }),
  );
}

class Refused extends Error {}

/** The answer; Refused when it was one of the table's codes. */
async function answer<T>(round: Round, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('no answer')), NO_ANSWER_MS);
  });
  try {
    return await Promise.race([promise, silence]);
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    if (error.code === 'internal') throw new Error(`internal: ${error.message}`, { cause: error });
    round.refused.set(error.code, (round.refused.get(error.code) ?? 0) + 1);
    throw new Refused(error.code);
  } finally {
    clearTimeout(timer);
  }
}

/** Undefined when it was refused: the step goes on. */
async function attempt<T>(round: Round, promise: Promise<T>): Promise<T | undefined> {
  try {
    return await answer(round, promise);
  } catch (error) {
    if (error instanceof Refused) return undefined;
    throw error;
  }
}

async function start(link: HostApi, round: Round, spec: StartSpec) {
  const { process } = await answer(round, link.start(OWNER, spec));
  return process.id;
}

/** Waits may be refused; then they are asked again, since the process ends all the same. */
async function outcomeOf(link: HostApi, round: Round, id: string): Promise<Outcome | undefined> {
  for (let turn = 0; turn < 20; turn += 1) {
    const found = await attempt(
      round,
      link.wait(OWNER, { waits: [{ id, for: [{ kind: 'closed' }] }], timeoutMs: NO_ANSWER_MS / 2 }),
    );
    if (found?.timedOut === true) throw new Error('it has ended and is not told as closed');
    if (found) return found.met[0]?.process.outcome;
  }
  return undefined;
}

function expectOutcome(found: Outcome | undefined, expected: Outcome): void {
  if (found !== undefined && JSON.stringify(found) !== JSON.stringify(expected))
    throw new Error(`ended with ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`);
}

/** All that can be read; undefined when the host says that something is missing, or refuses. */
async function outputOf(link: HostApi, round: Round, id: string): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  for (let after = 0, end = false; !end;) {
    const page = await answer(round, link.read(OWNER, { id, after }));
    const events = [...decodeRecords(page.records)];
    if (page.missed || events.some(({ kind }) => kind === 'gap')) return undefined;
    for (const event of events) if (event.kind === 'output') chunks.push(event.data);
    if (page.nextAfter === after && !page.end) throw new Error('a closed process has no end');
    ({ nextAfter: after, end } = page);
  }
  return Buffer.concat(chunks).toString();
}

function expectText(found: string | undefined, expected: RegExp): void {
  if (found !== undefined && !expected.test(found))
    throw new Error(`printed ${JSON.stringify(found)} instead of ${String(expected)}`);
}

async function pipes(link: HostApi, round: Round): Promise<void> {
  const command = 'echo out; echo err >&2; exit 3';
  const id = await start(link, round, { command, streams: 'separate' });
  expectOutcome(await outcomeOf(link, round, id), { kind: 'exit', code: 3 });
  const whole = await attempt(round, outputOf(link, round, id));
  expectText(whole, /^(?:out\nerr|err\nout)\n$/);
  const found = await attempt(round, link.search(OWNER, { id, pattern: 'out' }));
  if (whole !== undefined && found && found.hits.length !== 1)
    throw new Error(`found ${found.hits.length} times instead of once`);
  const regex = { id, pattern: 'e.r', kind: 'regex' } as const;
  await attempt(round, link.search(OWNER, regex));
  const text = await attempt(round, link.text(OWNER, { id }));
  if (whole !== undefined && text) expectText(text.text, /^(?:out\nerr|err\nout)\n$/);
  await remove(link, round, id);
}

/** Once it is removed it is gone; its files serve the next start. */
async function remove(link: HostApi, round: Round, id: string): Promise<void> {
  if (!(await attempt(round, link.remove(OWNER, { id })))) return;
  try {
    await link.get(OWNER, { id });
  } catch (error) {
    if (error instanceof HoldfastError && error.code === 'not_found') return;
    throw error;
  }
  throw new Error('removed, and still there');
}

/** More than a pipe holds. */
async function large(link: HostApi, round: Round): Promise<void> {
  const id = await start(link, round, { command: "head -c 300000 /dev/zero | tr '\\0' x" });
  expectOutcome(await outcomeOf(link, round, id), { kind: 'exit', code: 0 });
  const text = await attempt(round, outputOf(link, round, id));
  if (text !== undefined && (text.length !== 300_000 || /[^x]/.test(text)))
    throw new Error(`printed ${text.length} bytes instead of 300000`);
  await remove(link, round, id);
}

async function shell(link: HostApi, round: Round): Promise<void> {
  const id = await start(link, round, { argv: ['bash', '--norc'], streams: 'pty' });
  await attempt(round, link.resize(OWNER, { id, size: { cols: 100, rows: 30 } }));
  const command = 'stty size; (exit 7)';
  const ran = await attempt(round, link.run(OWNER, { id, command, timeoutMs: RUN_MS }));
  if (ran?.exitCode !== undefined && ran.exitCode !== 7)
    throw new Error(`a run ended with ${ran.exitCode} instead of 7`);
  await attempt(round, link.signal(OWNER, { id, signal: 'INT', reach: 'foreground' }));
  for (let turn = 0; turn < 20; turn += 1)
    if (await attempt(round, link.signal(OWNER, { id, signal: 'KILL' }))) break;
  const outcome = await outcomeOf(link, round, id);
  if (outcome !== undefined && (outcome.kind !== 'signal' || outcome.signal !== 'SIGKILL'))
    throw new Error(`killed, and told as ${JSON.stringify(outcome)}`);
  await remove(link, round, id);
}

async function leased(link: HostApi, round: Round): Promise<void> {
  const lease = `lease-${round.number}`;
  if (!(await attempt(round, link.holdLease(OWNER, { name: lease, ttlMs: 600_000 })))) return;
  const id = await start(link, round, { command: 'sleep 600', lease });
  for (let turn = 0; turn < 20; turn += 1)
    if (await attempt(round, link.holdLease(OWNER, { name: lease, ttlMs: 0 }))) break;
  if ((await outcomeOf(link, round, id)) === undefined) return;
  await remove(link, round, id);
}

async function terminal(link: HostApi, round: Round): Promise<void> {
  const argv = ['sh', '-c', 'echo pty; read x; echo got $x; exit 4'];
  const id = await start(link, round, { argv, streams: 'pty' });
  const writeId = 'w';
  const data = Buffer.from('hi\n');
  // Asked again with the same id until it is taken: it is typed once.
  for (let turn = 0; turn < 20; turn += 1)
    if (await attempt(round, link.write(OWNER, { id, data, writeId }))) break;
  expectOutcome(await outcomeOf(link, round, id), { kind: 'exit', code: 4 });
  expectText(await attempt(round, outputOf(link, round, id)), /^(?:pty\r\n|hi\r\n){2}got hi\r\n$/);
  await remove(link, round, id);
}

async function input(link: HostApi, round: Round): Promise<void> {
  const id = await start(link, round, { argv: ['cat'], stdin: 'pipe' });
  const write = { id, data: Buffer.from('once\n'), writeId: 'a' };
  const first = await attempt(round, link.write(OWNER, write));
  const second = await attempt(round, link.write(OWNER, write));
  if (first && second && !second.repeated) throw new Error('a write id was applied twice');
  for (let turn = 0; turn < 20; turn += 1)
    if (await attempt(round, link.write(OWNER, { id, eof: true }))) break;
  expectOutcome(await outcomeOf(link, round, id), { kind: 'exit', code: 0 });
  const expected = first || second ? /^once\n$/ : /^(?:once\n)?$/;
  expectText(await attempt(round, outputOf(link, round, id)), expected);
  await remove(link, round, id);
}

async function daemon(link: HostApi, round: Round): Promise<void> {
  const command = 'setsid sleep 600 >/dev/null 2>&1 & echo up';
  const id = await start(link, round, { command });
  expectOutcome(await outcomeOf(link, round, id), { kind: 'exit', code: 0 });
  const info = await attempt(round, link.get(OWNER, { id }));
  if (info?.settled === true) throw new Error('called settled while its daemon lives');
  const ended = await answer(round, link.signal(OWNER, { id, signal: 'terminate' }));
  if (ended.survivors.length > 0)
    round.refused.set('survivors', (round.refused.get('survivors') ?? 0) + 1);
  else await remove(link, round, id);
}

async function killed(link: HostApi, round: Round): Promise<void> {
  const id = await start(link, round, { command: 'sleep 600' });
  await answer(round, link.signal(OWNER, { id, signal: 'KILL', by: 'work' }));
  const outcome = await outcomeOf(link, round, id);
  if (outcome !== undefined && (outcome.kind !== 'signal' || outcome.signal !== 'SIGKILL'))
    throw new Error(`killed, and told as ${JSON.stringify(outcome)}`);
  await remove(link, round, id);
}

async function listed(link: HostApi, round: Round): Promise<void> {
  await attempt(round, link.list(OWNER, {}));
  await attempt(round, link.health(OWNER, {}));
  const told = await attempt(round, link.completions(OWNER, {}));
  const numbers = told?.completions.map(({ number }) => number) ?? [];
  if (numbers.length > 0) await attempt(round, link.acknowledge(OWNER, { numbers }));
}

/** A connection of its own; one that is refused or cut is an answer, too. */
async function linked(socket: string, round: Round): Promise<void> {
  let link: KeeperLink;
  try {
    link = await openLink(socket);
  } catch (error) {
    const code = error instanceof HoldfastError ? error.code : 'no link';
    round.refused.set(code, (round.refused.get(code) ?? 0) + 1);
    return;
  }
  try {
    await attempt(round, link.health(OWNER, {}));
  } finally {
    await link.close();
  }
}
