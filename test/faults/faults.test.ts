// Every system call of a keeper fails in every way it can, one occurrence after another. FAULTS=1 runs the whole matrix
// (npm run test:faults); otherwise one error of some calls, once. FAULT_CALLS names calls, or pairs as call:error, to be taken
// alone.

import { describe, expect, it } from 'vitest';
import { Campaign, type Session, type Told } from './campaign.ts';
import { injectionProblem } from './injection.ts';
import { faultMatrix, type FaultRow } from './matrix.ts';

const WHOLE = process.env['FAULTS'] !== undefined;
/** What is tried in every test run, which has no time for all. */
const SAMPLE =
  'openat,pread64,epoll_ctl,kill,pidfd_open,pwrite64,pwritev,write,writev,unlink,pipe2,epoll_wait,epoll_pwait,clone3,wait4,waitid,accept4';
const ONLY = (process.env['FAULT_CALLS'] ?? (WHOLE ? undefined : SAMPLE))?.split(',');
const OCCURRENCES = 50;
/** Of work, for a call that is made seldom. */
const MOST_ROUNDS = 25;
/** Every fifth occurrence fails, from the first, second ... fifth on: each of them fails once. */
const STEP = 5;
/** What a keeper may use of a second in which nobody asks it anything. */
const MOST_IDLE_MS = 60;

const problem = injectionProblem();
if (problem !== undefined) process.stderr.write(`faults are not injected: ${problem}\n`);

const pairs = faultMatrix.flatMap((row) =>
  (WHOLE ? row.errors : row.errors.slice(0, 1)).map((error) => ({ ...row, error })),
);
const chosen = pairs.filter(
  ({ call, error }) => ONLY?.some((only) => only === call || only === `${call}:${error}`) ?? true,
);

describe.skipIf(problem !== undefined)('system calls of the keeper fail', () => {
  it(
    '[X9] answers are codes of the table or true, and nothing is left when the faults are over',
    { timeout: 3_600_000 },
    async () => {
      const campaign = new Campaign(!WHOLE);
      const told: Told[] = [];
      for (const pair of chosen) {
        const found: Told[] = [];
        for (const session of sessions(pair)) found.push(await campaign.run(session));
        const summary = sum(`${pair.call} ${pair.error}`, found);
        if (WHOLE) summary.wrong.push(...(await idleProblems(campaign)));
        told.push(summary);
        if (WHOLE) process.stdout.write(`${line(summary)}\n`);
      }
      await campaign.close();
      expect(told.filter(({ wrong }) => wrong.length > 0).map(line)).toEqual([]);
      // Of the calls that every keeper makes, at least, some have failed.
      expect(told.reduce((all, { failed }) => all + failed, 0)).toBeGreaterThan(told.length);
    },
  );
});

function sessions(of: FaultRow & { readonly error: string }): Session[] {
  const bounds = { occurrences: OCCURRENCES, rounds: of.rounds ?? MOST_ROUNDS };
  if (!WHOLE) return [{ ...of, ...bounds, rounds: 1, when: `1..${OCCURRENCES}+3` }];
  return Array.from({ length: STEP }, (_, first) => {
    return { ...of, ...bounds, when: `${first + 1}..${OCCURRENCES}+${STEP}` };
  });
}

async function idleProblems(campaign: Campaign): Promise<string[]> {
  const ms = await campaign.idleMs();
  return ms > MOST_IDLE_MS ? [`uses ${ms} ms of a second in which it has nothing to do`] : [];
}

function sum(fault: string, found: readonly Told[]): Told & { wrong: string[] } {
  const refused: Record<string, number> = {};
  for (const each of found)
    for (const [code, count] of Object.entries(each.refused))
      refused[code] = (refused[code] ?? 0) + count;
  const wrong = new Set(found.flatMap((each) => each.wrong));
  const total = (name: 'calls' | 'failed'): number =>
    found.reduce((all, each) => all + each[name], 0);
  return { fault, calls: total('calls'), failed: total('failed'), refused, wrong: [...wrong] };
}

function line({ fault, calls, failed, refused, wrong }: Told): string {
  const codes = Object.entries(refused).map(([code, count]) => `${code} ${count}`);
  const verdict = wrong.length === 0 ? 'right' : `WRONG: ${wrong.join(' | ')}`;
  return `${fault.padEnd(26)} ${failed} of ${calls} failed; ${codes.join(', ') || 'all answered'}; ${verdict}`;
}
