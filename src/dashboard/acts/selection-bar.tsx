// What can be done with the selected processes.

import type { ProcessInfo } from '../../protocol/process.ts';
import { countText } from '../model/words.ts';

interface Props {
  readonly processes: readonly ProcessInfo[];
  readonly compare: () => void;
  readonly stop: () => void;
  readonly clear: () => void;
}

export function SelectionBar({ processes, compare, stop, clear }: Props) {
  const running = processes.filter(({ outcome }) => !outcome).length;
  return (
    <div class="bar" role="toolbar" aria-label="Selected processes">
      <b>{countText(processes.length)} selected</b>
      <button type="button" disabled={processes.length !== 2} onClick={compare}>
        Compare <kbd>c</kbd>
      </button>
      <button type="button" class="danger" disabled={running === 0} onClick={stop}>
        Stop {countText(running)} <kbd>x</kbd>
      </button>
      <button type="button" class="quiet" onClick={clear}>
        Clear
      </button>
    </div>
  );
}
