// What is known of one process: its living processes while there are any, what was decided at its start, how it is, and
// what it has used.

import type { ProcessInfo } from '../../protocol/process.ts';
import { isShare } from '../core/token.ts';
import { stateWords } from '../model/state-words.ts';
import { bytesText, countText, dateText, durationText, visibleText } from '../model/words.ts';
import { ProcessTree } from './process-tree.tsx';

/** What an ended process has used, as far as the kernel counted it. */
function costOf({ usage }: ProcessInfo): [string, string | undefined][] {
  if (!usage) return [];
  const { userMs, systemMs, peakMemoryBytes, readBytes, writtenBytes, peakProcesses } = usage;
  const processor = `${durationText(userMs + systemMs)}, ${durationText(systemMs)} of it in the kernel`;
  return [
    ['processor', usage.complete ? processor : `${processor}; not all of it was counted`],
    ['peak memory', peakMemoryBytes === undefined ? undefined : bytesText(peakMemoryBytes)],
    ['most processes', peakProcesses === undefined ? undefined : countText(peakProcesses)],
    ['read from disk', bytesText(readBytes)],
    ['written to disk', bytesText(writtenBytes)],
  ];
}

export function Facts({ process }: { readonly process: ProcessInfo }) {
  const { bytes, labels = {}, outcome } = process;
  const rows: [string, string | undefined][] = [
    ['id', process.id],
    ['name', process.name],
    ['key', process.key],
    ['host', process.host],
    ['owner', process.owner],
    ['command', process.command],
    ['directory', process.cwd],
    ['pid', String(process.pid)],
    ['streams', process.streams],
    ['terminal', process.size && `${process.size.cols} × ${process.size.rows}`],
    ['state', stateWords(process).word],
    ['reason', outcome?.kind === 'lost' ? outcome.reason : undefined],
    ['settled', process.settled ? 'yes: no descendant is alive' : 'no: something of it is alive'],
    ['lease', process.lease],
    ['started', dateText(process.startedAtMs)],
    ['exited', process.exitedAtMs === undefined ? undefined : dateText(process.exitedAtMs)],
    ['closed', process.closedAtMs === undefined ? undefined : dateText(process.closedAtMs)],
    ['events', countText(process.seq)],
    ['output', bytesText(bytes.total)],
    ['still stored', bytesText(bytes.retained)],
    ['dropped by the size limit', bytes.dropped > 0 ? bytesText(bytes.dropped) : undefined],
    ['lost', bytes.lost > 0 ? bytesText(bytes.lost) : undefined],
    ['not stored because', process.degraded],
    ...costOf(process),
    ...Object.entries(labels).map(([name, value]): [string, string] => [`label ${name}`, value]),
  ];
  return (
    <div class="page">
      {!process.settled && !isShare.value && <ProcessTree process={process} />}
      <dl class="rows">
        {rows.map(([name, text]) =>
          text === undefined ? null : (
            <div key={name}>
              <dt>{visibleText(name)}</dt>
              <dd>{visibleText(text)}</dd>
            </div>
          ),
        )}
      </dl>
    </div>
  );
}
