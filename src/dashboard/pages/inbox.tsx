// The inbox: what has ended and nobody has looked at, failures first.

import { useSignal } from '@preact/signals';
import type { Completion } from '../../protocol/host-api.ts';
import { acknowledge, inbox, inboxLoaded, inboxProblem } from '../core/inbox.ts';
import { useKeys } from '../core/keyboard.ts';
import { nowMs } from '../core/now.ts';
import { processes } from '../core/processes.ts';
import { go } from '../core/route.ts';
import { stateWords } from '../model/state-words.ts';
import { dateText, durationText, visibleText } from '../model/words.ts';
import { processLink } from '../parts/process-list.tsx';

/** More are reached by acknowledging these. */
const MOST_SHOWN = 200;

export function InboxPage() {
  const chosen = useSignal(0);
  const items = inbox.value;
  const at = Math.min(chosen.value, items.length - 1);
  const item = items[at];
  const move = (to: number): void => {
    chosen.value = Math.max(0, Math.min(items.length - 1, to));
  };
  useKeys([
    { keys: 'j', label: 'down', run: () => move(at + 1) },
    { keys: 'k', label: 'up', run: () => move(at - 1) },
    { keys: 'ArrowDown', run: () => move(at + 1) },
    { keys: 'ArrowUp', run: () => move(at - 1) },
    { keys: 'Enter', label: 'open', run: () => item && go(processLink(item)) },
    { keys: 'e', label: 'done', run: () => item && void acknowledge([item]) },
    { keys: 'E', label: 'all done', run: () => void acknowledge(items) },
  ]);
  const running = processes.value.filter(({ outcome }) => !outcome).length;
  return (
    <main class="page">
      <div class="inbox-head">
        <h1>Ended since you looked</h1>
        <span class="stretch" />
        {items.length > 0 && (
          <button type="button" onClick={() => void acknowledge(items)}>
            All done
          </button>
        )}
      </div>
      {inboxProblem.value && (
        <p class="problem" role="alert">
          {inboxProblem.value.message}
        </p>
      )}
      {items.length === 0 && inboxLoaded.value && (
        <p class="muted">Nothing new has ended. {running} running.</p>
      )}
      <ul class="inbox">
        {items.slice(0, MOST_SHOWN).map((each, index) => (
          <Item key={each.number} item={each} isChosen={index === at} />
        ))}
      </ul>
      {items.length > MOST_SHOWN && (
        <p class="muted">{items.length - MOST_SHOWN} more, older or without a failure.</p>
      )}
    </main>
  );
}

function Item({ item, isChosen }: { readonly item: Completion; readonly isChosen: boolean }) {
  const { outcome, name, command, owner, lastLines, atMs } = item;
  const { glyph, word, tone } = stateWords({ state: 'closed', settled: true, outcome });
  const last = lastLines.trimEnd().split('\n').at(-1) ?? '';
  return (
    <li class={isChosen ? 'chosen' : ''}>
      <span class={`state ${tone}`}>
        <span aria-hidden="true">{glyph}</span> {word}
      </span>
      <a href={processLink(item)} class="cut">
        {name !== undefined && <b>{visibleText(name)} </b>}
        <code>{visibleText(command)}</code>
      </a>
      <code class="muted cut">{visibleText(last)}</code>
      <span class="muted" title={dateText(atMs)}>
        {visibleText(owner)} · {durationText(nowMs.value - atMs)} ago · took{' '}
        {durationText(item.durationMs)}
      </span>
      <button type="button" onClick={() => void acknowledge([item])}>
        Done
      </button>
    </li>
  );
}
