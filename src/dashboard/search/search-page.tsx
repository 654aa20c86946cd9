// Search over everything that was ever printed and is still stored: the newest process first, hits as they are found.

import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { useKeys } from '../core/keyboard.ts';
import { nowMs } from '../core/now.ts';
import { go, linkTo, place, setQuery } from '../core/route.ts';
import { stateWords } from '../model/state-words.ts';
import { countText, durationText, visibleText } from '../model/words.ts';
import { useSearch, type Hits, type Progress, type Search } from './use-search.ts';

export function SearchPage() {
  const field = useRef<HTMLInputElement>(null);
  const chosen = useSignal(-1);
  const pattern = place.value.query.get('q') ?? '';
  const isRegex = place.value.query.get('regex') === 'yes';
  const search = useSearch(pattern, isRegex);
  useEffect(() => {
    chosen.value = -1;
  }, [pattern, isRegex]);
  const { problem, progress } = search;
  const places = search.found.value.flatMap(({ process, hits }) =>
    hits.map(({ offset }) => hitLink(process, offset)),
  );
  const move = (by: number): void => {
    chosen.value = Math.max(0, Math.min(places.length - 1, chosen.value + by));
  };
  const open = (): void => {
    const link = places[chosen.value];
    if (link !== undefined) go(link);
  };
  useKeys([
    { keys: '/', label: 'search', run: () => field.current?.focus() },
    { keys: 'j', label: 'next hit', run: () => move(1) },
    { keys: 'k', label: 'previous hit', run: () => move(-1) },
    { keys: 'ArrowDown', run: () => move(1) },
    { keys: 'ArrowUp', run: () => move(-1) },
    { keys: 'Enter', label: 'open', run: open },
  ]);
  const ask = (q: string, regex: boolean): void => setQuery({ q, regex: regex ? 'yes' : '' });
  return (
    <main class="list-page">
      <h1 class="unseen">Search</h1>
      <div class="bar">
        <input
          type="search"
          ref={field}
          key={pattern}
          defaultValue={pattern}
          autoFocus={pattern === ''}
          placeholder="Search the output of every process, then Enter"
          aria-label="Search the output of every process"
          onKeyDown={({ key, currentTarget }) => {
            if (key === 'Enter') ask(currentTarget.value, isRegex);
            if (key === 'Enter' || key === 'Escape') currentTarget.blur();
          }}
        />
        <label class="choice">
          <input
            type="checkbox"
            checked={isRegex}
            onChange={({ currentTarget }) => ask(pattern, currentTarget.checked)}
          />
          regular expression
        </label>
        <span class="stretch" />
        <Says progress={progress.value} hits={places.length} />
      </div>
      {problem.value && (
        <p class="problem" role="alert">
          {problem.value.message} {problem.value.remedy}
        </p>
      )}
      {pattern === '' ? <Teach /> : <Results search={search} chosen={chosen.value} />}
    </main>
  );
}

function Results({ search, chosen }: { readonly search: Search; readonly chosen: number }) {
  const found = search.found.value;
  const progress = search.progress.value;
  let number = -1;
  return (
    <div class="search-view" tabIndex={0} role="region" aria-label="Hits">
      {found.map(({ process, hits, truncated }) => (
        <section key={`${process.owner} ${process.id}`} class="found">
          <ProcessHead process={process} />
          {hits.map(({ offset, line, match }) => {
            number += 1;
            const link = hitLink(process, offset);
            const isChosen = number === chosen;
            return <Hit key={offset} link={link} line={line} match={match} isChosen={isChosen} />;
          })}
          {truncated && <p class="muted more-hits">There are more in this process.</p>}
        </section>
      ))}
      {progress?.isDone === true && found.length === 0 && (
        <p class="nothing">Nothing found in {countText(progress.total)} processes.</p>
      )}
      {progress?.next !== undefined && (
        <p class="more">
          <button type="button" onClick={search.goOn}>
            Search older processes
          </button>
        </p>
      )}
    </div>
  );
}

function hitLink({ owner, id }: Hits['process'], offset: number): string {
  return linkTo(['p', owner, id, 'log'], { at: String(offset) });
}

function Says({ progress, hits }: { progress: Progress | undefined; readonly hits: number }) {
  if (!progress) return null;
  const { isDone, searched, total, next } = progress;
  const most = next === undefined ? '' : 'first ';
  return (
    <span class="muted" role="status">
      {isDone
        ? `${most}${countText(hits)} ${hits === 1 ? 'hit' : 'hits'} in ${countText(searched)} processes`
        : `searching … ${countText(searched)} of ${countText(total)}`}
    </span>
  );
}

function Teach() {
  return (
    <div class="nothing">
      <h2>Everything that was printed</h2>
      <p class="muted">
        The search looks at all stored output of running and ended processes, line by line. From the
        command line: <code>holdfast search --all PATTERN</code>
      </p>
    </div>
  );
}

function ProcessHead({ process }: { readonly process: Hits['process'] }) {
  const { glyph, word, tone } = stateWords({ settled: true, ...process });
  const { name, command, owner, startedAtMs } = process;
  return (
    <h2 class="found-head">
      <span class={tone}>
        <span aria-hidden="true">{glyph}</span> {word}
      </span>
      <a class="cut" href={linkTo(['p', owner, process.id])}>
        {name !== undefined && <b>{visibleText(name)} </b>}
        <code>{visibleText(command)}</code>
      </a>
      <span class="muted">
        {visibleText(owner)} · {durationText(nowMs.value - startedAtMs)} ago
      </span>
    </h2>
  );
}

interface HitProps {
  readonly link: string;
  readonly line: string;
  readonly match: string;
  readonly isChosen: boolean;
}

function Hit({ link, line, match, isChosen }: HitProps) {
  const element = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    if (isChosen) element.current?.scrollIntoView({ block: 'nearest' });
  }, [isChosen]);
  const at = match === '' ? -1 : line.indexOf(match);
  return (
    <a ref={element} href={link} class={isChosen ? 'hit-line chosen' : 'hit-line'}>
      {at < 0 ? (
        visibleText(line)
      ) : (
        <>
          {visibleText(line.slice(0, at))}
          <mark>{visibleText(match)}</mark>
          {visibleText(line.slice(at + match.length))}
        </>
      )}
    </a>
  );
}
