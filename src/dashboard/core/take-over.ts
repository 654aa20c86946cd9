// A person who presses "t" in the list wants the keyboard of that terminal: it is taken when its screen is open. This is kept in
// the page and not in its address, so no link can take a keyboard.

import { keyOf } from './processes.ts';
import { go, linkTo } from './route.ts';

interface Named {
  readonly owner: string;
  readonly id: string;
}

let wanted: string | undefined;

export function openAndTake(process: Named): void {
  wanted = keyOf(process);
  go(linkTo(['p', process.owner, process.id, 'screen']));
}

/** Once. */
export function takesOnArrival(process: Named): boolean {
  const isWanted = wanted === keyOf(process);
  wanted = undefined;
  return isWanted;
}
