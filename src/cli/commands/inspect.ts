// `holdfast inspect`

import { causeWords, confinementWords } from '../../protocol/confinement/words.ts';
import { usageWords } from '../output/usage.ts';
import { systemTable } from '../../system/proc-table.ts';
import type { ListeningPort } from '../../protocol/host-api.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { isError } from '../caller.ts';
import type { Command } from '../arguments/command.ts';
import { endNote, stateWords } from '../output/outcome.ts';
import { alignedRows } from '../output/table.ts';
import { formatBytes, formatDuration } from '../arguments/units.ts';
import { shellWord } from '../arguments/words.ts';
import { summaries } from '../summaries.ts';

interface Descendant {
  readonly pid: number;
  readonly command: string;
}

export const command: Command = {
  name: 'inspect',
  usage: 'ID',
  summary: summaries.inspect,
  examples: ['holdfast inspect web'],
  takes: 'processes',
  options: {},
  read({ words, caller }) {
    const [text = ''] = words.expect('ID');
    return async () => {
      const process = await caller.find(text);
      const { id, owner } = process;
      const ports = await caller
        .ask((host) => host.ports(owner, { id }))
        .then((found) => found.ports)
        .catch((error: unknown) => {
          // It has ended: nothing listens.
          if (!isError(error, 'not_running')) throw error;
          return [];
        });
      // Those at another machine are not in this one's /proc.
      const isHere = process.state === 'running' && process.host === undefined;
      const descendants = isHere ? descendantsOf(process.pid) : [];
      const rows = rowsOf(process, ports, descendants);
      return { result: { process, ports, descendants }, lines: alignedRows(rows, Infinity) };
    };
  },
};

function rowsOf(
  process: ProcessInfo,
  ports: readonly ListeningPort[],
  descendants: readonly Descendant[],
): string[][] {
  const { bytes, outcome, name, key, lease, size, labels = {} } = process;
  const moment = (ms: number): string => new Date(ms).toISOString();
  const missing = bytes.dropped + bytes.lost;
  const terminal = size ? `a terminal of ${size.cols}x${size.rows}` : process.streams;
  const ending = outcome && endNote(outcome);
  return [
    ['id', process.id],
    ...(process.host === undefined ? [] : [['host', process.host]]),
    ...(name === undefined ? [] : [['name', name]]),
    ['owner', process.owner],
    ...(key === undefined ? [] : [['key', key]]),
    ...(lease === undefined ? [] : [['lease', lease]]),
    ['command', process.argv.map(shellWord).join(' ')],
    ['directory', process.cwd],
    ['state', [process.state, stateWords(process)].filter(Boolean).join(', ')],
    ...(ending === undefined ? [] : [['ending', ending]]),
    ['pid', String(process.pid)],
    [
      'started',
      `${moment(process.startedAtMs)}, ${outcome ? 'ran' : 'running'} for ${formatDuration(process.durationMs)}`,
    ],
    ...(process.exitedAtMs === undefined ? [] : [['ended', moment(process.exitedAtMs)]]),
    ...(process.usage ? [['used', usageWords(process.usage)]] : []),
    ...(process.causes ?? []).map((cause) => ['cause', causeWords(cause)]),
    ...(process.confinement ? [['confined', confinementWords(process.confinement)]] : []),
    [
      'output',
      `${formatBytes(bytes.total)}${missing > 0 ? `, ${missing} bytes of it no longer kept` : ''}`,
    ],
    ['streams', `${terminal}, stdin ${process.stdin}`],
    ...Object.entries(labels).map(([label, value]) => [`label ${label}`, value]),
    ...ports.map(({ port, address, pid }) => ['listens', `${address} port ${port}, pid ${pid}`]),
    ...descendants.map(({ pid, command: line }) => ['child', `${pid} ${line}`]),
  ];
}

/** As /proc shows them now; those that have left their parents are found by "stop" all the same. */
function descendantsOf(root: number): Descendant[] {
  const found: Descendant[] = [];
  for (
    let next = systemTable.childrenOf(root);
    next.length > 0;
    next = next.flatMap((pid) => systemTable.childrenOf(pid))
  )
    found.push(...next.map((pid) => ({ pid, command: systemTable.commandOf(pid) })));
  return found;
}
