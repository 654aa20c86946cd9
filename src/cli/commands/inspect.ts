// `holdfast inspect`

import { causeWords, confinementWords } from '../../protocol/confinement/words.ts';
import { usageWords } from '../output/usage.ts';
import type { HostApi, ListeningPort, TreeMember } from '../../protocol/host-api.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { isError } from '../caller.ts';
import type { Command } from '../arguments/command.ts';
import { endNote, stateWords } from '../output/outcome.ts';
import { alignedRows } from '../output/table.ts';
import { formatBytes, formatDuration } from '../arguments/units.ts';
import { shellWord } from '../arguments/words.ts';
import { summaries } from '../summaries.ts';

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
      const { ports, members } = await caller
        .ask((host) => lookAt(host, owner, id))
        .catch((error: unknown) => {
          // It has ended: nothing listens.
          if (!isError(error, 'not_running')) throw error;
          return { ports: [], members: [] };
        });
      const descendants = members.filter(({ pid }) => pid !== process.pid);
      const rows = rowsOf(process, ports, descendants);
      return { result: { process, ports, descendants }, lines: alignedRows(rows, Infinity) };
    };
  },
};

async function lookAt(host: HostApi, owner: string, id: string) {
  return { ...(await host.ports(owner, { id })), ...(await host.tree(owner, { id })) };
}

function rowsOf(
  process: ProcessInfo,
  ports: readonly ListeningPort[],
  descendants: readonly TreeMember[],
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
    ...descendants.map(({ pid, command: line, cpuMs, memoryBytes }) => [
      'child',
      `${pid} ${line} (${formatDuration(cpuMs)} of processor time, ${formatBytes(memoryBytes)})`,
    ]),
  ];
}
