// The inbox: what needs a person now, then what has ended and nobody has looked at, failures first.

import { useSignal } from '@preact/signals';
import type { Need } from '../../protocol/dashboard/attention.ts';
import type { Completion } from '../../protocol/host-api.ts';
import { acknowledge, inbox, inboxLoaded, inboxProblem } from '../core/inbox.ts';
import { useKeys } from '../core/keyboard.ts';
import { dismiss, needs } from '../core/needs.ts';
import { nowMs } from '../core/now.ts';
import { keyOf, processes } from '../core/processes.ts';
import { go } from '../core/route.ts';
import { notifies, quietAfter } from '../core/settings.ts';
import { needWords, stateWords, type StateWords } from '../model/state-words.ts';
import { countText, dateText, durationText, visibleText } from '../model/words.ts';
import { processLink } from '../parts/process-list.tsx';

/** More are reached by acknowledging these. */
const MOST_SHOWN = 200;

export function InboxPage() {
  const chosen = useSignal(0);
  const waiting = needs.value;
  const ended = inbox.value;
  const count = waiting.length + ended.length;
  const at = Math.max(0, Math.min(chosen.value, count - 1));
  const item = waiting[at] ?? ended[at - waiting.length];
  const done = (): void => {
    const need = waiting[at];
    const completion = ended[at - waiting.length];
    if (need) void dismiss(need);
    else if (completion) void acknowledge([completion]);
  };
  const allDone = (): void => {
    for (const need of waiting) void dismiss(need);
    if (ended.length > 0) void acknowledge(ended);
  };
  const move = (to: number): void => {
    chosen.value = Math.max(0, Math.min(count - 1, to));
  };
  useKeys([
    { keys: 'j', label: 'down', run: () => move(at + 1) },
    { keys: 'k', label: 'up', run: () => move(at - 1) },
    { keys: 'ArrowDown', run: () => move(at + 1) },
    { keys: 'ArrowUp', run: () => move(at - 1) },
    { keys: 'Enter', label: 'open', run: () => item && go(processLink(item)) },
    { keys: 'e', label: 'done', run: done },
    { keys: 'E', label: 'all done', run: allDone },
  ]);
  return (
    <main class="page">
      <Head count={count} allDone={allDone} />
      {inboxProblem.value && (
        <p class="problem" role="alert">
          {inboxProblem.value.message}
        </p>
      )}
      {count === 0 && inboxLoaded.value && <Nothing />}
      {waiting.length > 0 && (
        <section aria-labelledby="waiting">
          <h2 id="waiting">Need you</h2>
          <ul class="inbox">
            {waiting.map((need, index) => (
              <NeedItem key={keyOf(need)} need={need} isChosen={index === at} />
            ))}
          </ul>
        </section>
      )}
      {ended.length > 0 && (
        <section aria-labelledby="ended">
          <h2 id="ended">Ended since you looked</h2>
          <ul class="inbox">
            {ended.slice(0, MOST_SHOWN).map((each, index) => (
              <EndedItem key={each.number} item={each} isChosen={waiting.length + index === at} />
            ))}
          </ul>
        </section>
      )}
      {ended.length > MOST_SHOWN && (
        <p class="muted">
          {countText(ended.length - MOST_SHOWN)} more, older or without a failure.
        </p>
      )}
    </main>
  );
}

function Head({ count, allDone }: { readonly count: number; readonly allDone: () => void }) {
  const toggle = (on: boolean): void => {
    notifies.value = on ? 'on' : 'off';
    if (on) void Notification.requestPermission();
  };
  return (
    <div class="inbox-head">
      <h1>Inbox</h1>
      <span class="stretch" />
      <label class="choice">
        also silent for
        <select
          value={quietAfter.value}
          onChange={({ currentTarget }) =>
            (quietAfter.value = currentTarget.value as typeof quietAfter.value)
          }
        >
          <option value="off">never</option>
          <option value="1 m">1 minute</option>
          <option value="5 m">5 minutes</option>
          <option value="30 m">30 minutes</option>
        </select>
      </label>
      <label class="choice">
        <input
          type="checkbox"
          checked={notifies.value === 'on'}
          onChange={({ currentTarget }) => toggle(currentTarget.checked)}
        />
        notify
      </label>
      {count > 0 && (
        <button type="button" onClick={allDone}>
          All done
        </button>
      )}
    </div>
  );
}

function Nothing() {
  const running = processes.value.filter(({ outcome }) => !outcome).length;
  return (
    <div class="nothing">
      <h2>Nothing needs you</h2>
      <p class="muted">
        {running === 0 ? 'Nothing runs.' : `${countText(running)} running.`} A terminal appears here
        when its program rings the bell, sends a notice or waits for input; everything else when it
        has ended.
      </p>
    </div>
  );
}

function NeedItem({ need, isChosen }: { readonly need: Need; readonly isChosen: boolean }) {
  return (
    <Item
      item={need}
      words={needWords(need)}
      last={need.text}
      when={`${visibleText(need.owner)} · ${durationText(nowMs.value - need.atMs)}`}
      isChosen={isChosen}
      done={() => void dismiss(need)}
    />
  );
}

function EndedItem({ item, isChosen }: { readonly item: Completion; readonly isChosen: boolean }) {
  const { outcome, owner, lastLines, atMs, durationMs } = item;
  const ago = durationText(nowMs.value - atMs);
  return (
    <Item
      item={item}
      words={stateWords({ state: 'closed', settled: true, outcome })}
      last={lastLines.trimEnd().split('\n').at(-1) ?? ''}
      when={`${visibleText(owner)} · ${ago} ago · took ${durationText(durationMs)}`}
      isChosen={isChosen}
      done={() => void acknowledge([item])}
    />
  );
}

interface ItemProps {
  readonly item: Need | Completion;
  readonly words: StateWords;
  readonly last: string;
  readonly when: string;
  readonly isChosen: boolean;
  readonly done: () => void;
}

function Item({ item, words: { glyph, word, tone }, last, when, isChosen, done }: ItemProps) {
  const { name, command, atMs } = item;
  return (
    <li class={isChosen ? 'chosen' : ''}>
      <span class={`state ${tone}`}>
        <span aria-hidden="true">{glyph}</span> {word}
      </span>
      <a href={processLink(item)} class="cut">
        {name !== undefined && <b>{visibleText(name)} </b>}
        <code>{visibleText(command)}</code>
      </a>
      <code class="muted cut said">{visibleText(last)}</code>
      <span class="muted when" title={dateText(atMs)}>
        {when}
      </span>
      <button type="button" onClick={done}>
        Done
      </button>
    </li>
  );
}
