// `holdfast inbox`

import type { Need } from '../../protocol/dashboard/attention.ts';
import { DASHBOARD_SUBSCRIBER } from '../../protocol/dashboard/subscriber.ts';
import type { Completion, HostApi } from '../../protocol/host-api.ts';
import { formatAge, plural } from '../arguments/units.ts';
import type { Answer, Command } from '../arguments/command.ts';
import { outcomeWords } from '../output/outcome.ts';
import type { StyledLine } from '../output/output.ts';
import { alignedRows, cut, tabbedRow } from '../output/table.ts';
import { summaries } from '../summaries.ts';

const MOST = 1000;

interface Inbox {
  readonly needs: readonly Need[];
  readonly completions: readonly Completion[];
}

export const command: Command = {
  name: 'inbox',
  usage: '[ID...] [--quiet 5m] [--done]',
  summary: summaries.inbox,
  examples: ['holdfast inbox'],
  takes: 'processes',
  options: {
    quiet: {
      type: 'string',
      value: '5m',
      about: 'also processes that run and have printed nothing for this long',
    },
    done: { type: 'boolean', about: 'mark what is listed as dealt with' },
  },
  notes: [
    'asks: the program rang the bell or sent a notice. reads: it waits for input. quiet: it prints nothing.',
    'The dashboard shows the same: what is done here is done there.',
    'Exit code 1: nothing needs you.',
  ],
  read({ words, caller, out }) {
    const ids = words.plain;
    const quietMs = words.durationMs('quiet');
    const done = words.flag('done');
    return async (): Promise<Answer> => {
      const wanted = new Set<string>();
      for (const id of ids) wanted.add((await caller.find(id)).id);
      const host = await caller.hostIfUsed();
      const all = host ? await read(host, caller.sees, quietMs) : { needs: [], completions: [] };
      const isWanted = ({ id }: { readonly id: string }): boolean =>
        wanted.size === 0 || wanted.has(id);
      const shown: Inbox = {
        needs: all.needs.filter(isWanted),
        completions: all.completions.filter(isWanted),
      };
      if (done && host) await markDone(host, caller.sees, shown);
      const count = shown.needs.length + shown.completions.length;
      const lines = count === 0 ? ['Nothing needs you.'] : linesOf(shown, out.columns);
      const said = done && count > 0 ? [`${plural(count, 'item')} done.`] : [];
      return { result: shown, lines: [...lines, ...said], exitCode: count === 0 ? 1 : 0 };
    };
  },
};

async function read(host: HostApi, sees: string, quietMs: number | undefined): Promise<Inbox> {
  const { needs } = await host.attention(sees, { quietMs });
  const wanted = { subscriber: DASHBOARD_SUBSCRIBER, limit: MOST };
  const { completions } = await host.completions(sees, wanted);
  return { needs, completions };
}

async function markDone(host: HostApi, sees: string, shown: Inbox): Promise<void> {
  for (const { owner, id } of shown.needs) await host.dismiss(owner, { id });
  const numbers = shown.completions.map(({ number }) => number);
  await host.acknowledge(sees, { subscriber: DASHBOARD_SUBSCRIBER, numbers });
}

const REASONS = { asked: 'asks', reads: 'reads', quiet: 'quiet' } as const;

function linesOf({ needs, completions }: Inbox, width: number | undefined): StyledLine[] {
  const rows = [
    ...needs.map((need) => ({ ...need, why: REASONS[need.reason], isNeed: true })),
    ...completions.toReversed().map((ended) => ({
      ...ended,
      why: outcomeWords(ended.outcome),
      text: ended.lastLines.trimEnd().split('\n').at(-1) ?? '',
      isNeed: false,
    })),
  ];
  if (width === undefined)
    return rows.map(({ id, why, atMs, name = '', text }) => ({
      text: tabbedRow([id, why, new Date(atMs).toISOString(), name, text]),
    }));
  const now = Date.now();
  const cells = rows.map(({ id, why, atMs, name, command: line, text }) => [
    id.slice(0, 8),
    why,
    formatAge(now - atMs),
    cut(name ?? line, 24),
    text,
  ]);
  return alignedRows(cells, width).map((text, index) => ({
    text,
    ...(rows[index]?.isNeed === true && { style: 'bold' as const }),
  }));
}
