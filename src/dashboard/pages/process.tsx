// One process: what it is, how it is, and its output.

import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { ProcessInfo } from '../../protocol/process.ts';
import { ask } from '../core/http.ts';
import { useKeys } from '../core/keyboard.ts';
import { needOf } from '../core/needs.ts';
import { nowMs } from '../core/now.ts';
import { listLoaded, processes, processOf } from '../core/processes.ts';
import { go, linkTo, place } from '../core/route.ts';
import { isShare } from '../core/token.ts';
import { needWords, stateWords } from '../model/state-words.ts';
import { durationText, visibleText } from '../model/words.ts';
import { askToRunAgain, canRunAgain } from '../acts/again.tsx';
import { Lazy } from '../parts/lazy.tsx';
import { Facts } from '../parts/facts.tsx';
import { LogView } from '../parts/log-view.tsx';
import { askToShare } from '../acts/share.tsx';
import { askToStop } from '../acts/stop.tsx';

export function ProcessPage() {
  const [, owner = '', id = '', shown] = place.value.parts;
  const process = processOf(owner, id);
  useKeys([{ keys: 'Escape', label: 'back', run: () => go(linkTo([])) }]);
  if (!process)
    return (
      <main class="page">
        <h1>{listLoaded.value ? 'There is no such process' : 'Loading …'}</h1>
        {listLoaded.value && (
          <p class="muted">
            It was removed, or its time was over: ended processes are kept for a day by default.{' '}
            <a href={linkTo([])}>All processes</a>
          </p>
        )}
      </main>
    );
  const tab = shown ?? (process.streams === 'pty' ? 'screen' : 'log');
  return (
    <main class="process">
      <Head process={process} tab={tab} />
      <Shown tab={tab} process={process} />
    </main>
  );
}

const loadScreen = async () => (await import('../terminal/screen-view.tsx')).ScreenView;

function Shown({ tab, process }: { readonly tab: string; readonly process: ProcessInfo }) {
  if (tab === 'facts') return <Facts process={process} />;
  if (tab === 'screen' && process.streams === 'pty')
    return <Lazy what="The terminal" load={loadScreen} props={{ process }} />;
  return <LogView process={process} />;
}

const TABS: readonly [string, string, string][] = [
  ['screen', 'Screen', 's'],
  ['log', 'Log', 'l'],
  ['facts', 'Facts', 'f'],
];

function Head({ process, tab }: { readonly process: ProcessInfo; readonly tab: string }) {
  const need = needOf(process);
  const { glyph, word, tone } = need ? needWords(need) : stateWords(process);
  const { owner, id, name, command, outcome } = process;
  const tabLink = (to: string): string => linkTo(['p', owner, id, to]);
  const tabs = TABS.filter(([to]) => to !== 'screen' || process.streams === 'pty');
  useKeys([
    ...tabs.map(([to, , key]) => ({ keys: key, run: () => go(tabLink(to)) })),
    ...(isShare.value ? [] : [{ keys: 'S', label: 'share', run: () => askToShare(process) }]),
    ...(outcome || isShare.value
      ? []
      : [{ keys: 'x', label: 'stop', run: () => askToStop(process) }]),
    ...(canRunAgain(process)
      ? [{ keys: 'R', label: 'run again', run: () => askToRunAgain(process) }]
      : []),
  ]);
  const earlier = processes.value.find(
    (each) =>
      each.owner === owner &&
      each.command === command &&
      each.startedAtMs < process.startedAtMs &&
      each.outcome !== undefined,
  );
  const ms = outcome ? process.durationMs : nowMs.value - process.startedAtMs;
  return (
    <header class="process-head">
      <div class="bar">
        <a href={linkTo([])} aria-label="All processes" class="back">
          ‹
        </a>
        <h1 class="cut">
          {name !== undefined && <b>{visibleText(name)} </b>}
          <code>{visibleText(command)}</code>
        </h1>
        <span class="stretch" />
        <span class={tone} role="status">
          <span aria-hidden="true">{glyph}</span> {word}{' '}
          {need && need.text !== '' && <code class="asked cut">{visibleText(need.text)} </code>}
          <span class="muted">{durationText(ms)}</span>
        </span>
        {earlier && (
          <a class="wide" href={linkTo(['compare', owner, earlier.id, owner, id])}>
            Compare with the run before
          </a>
        )}
        {canRunAgain(process) && (
          <button type="button" onClick={() => askToRunAgain(process)}>
            Run again
          </button>
        )}
        {!isShare.value && (
          <button type="button" onClick={() => askToShare(process)}>
            Share
          </button>
        )}
        {!outcome && !isShare.value && (
          <button type="button" class="danger" onClick={() => askToStop(process)}>
            Stop
          </button>
        )}
      </div>
      <div class="bar tabs">
        {tabs.map(([to, title]) => (
          <a key={to} href={tabLink(to)} {...(tab === to && { 'aria-current': 'page' as const })}>
            {title}
          </a>
        ))}
        <span class="stretch" />
        <span class="muted cut">
          {visibleText(owner)} · pid {process.pid} · {visibleText(process.cwd)}
        </span>
        {!isShare.value && <Ports process={process} />}
      </div>
    </header>
  );
}

interface Port {
  readonly port: number;
  readonly address: string;
}

const PORTS_MS = 5000;

function Ports({ process: { owner, id, outcome } }: { readonly process: ProcessInfo }) {
  const ports = useSignal<readonly number[]>([]);
  const isRunning = outcome === undefined;
  useEffect(() => {
    if (!isRunning) {
      ports.value = [];
      return undefined;
    }
    const look = (): void => {
      const path = `/v1/processes/${encodeURIComponent(id)}/ports`;
      ask<{ ports: Port[] }>('GET', path, { query: { owner } }).then(
        (found) => {
          ports.value = Array.from(new Set(found.ports.map(({ port }) => port)));
        },
        // The process has just ended, or the server cannot be reached, which the header says.
        () => undefined,
      );
    };
    look();
    const timer = setInterval(look, PORTS_MS);
    return () => clearInterval(timer);
  }, [owner, id, isRunning]);
  return (
    <>
      {ports.value.map((port) => (
        <a
          key={port}
          href={`http://${location.hostname}:${port}/`}
          target="_blank"
          rel="noopener noreferrer"
        >
          :{port} ↗
        </a>
      ))}
    </>
  );
}
