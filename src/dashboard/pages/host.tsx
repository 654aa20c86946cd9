// The host: how it is, what it is allowed, who uses it, and which pages are signed in.

import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { ask, Problem } from '../core/http.ts';
import { SessionTable, TokenTable, type Session, type Token } from '../parts/access.tsx';
import { FleetHosts, type FleetHost } from '../parts/fleet-hosts.tsx';
import { bytesText, countText, durationText, visibleText } from '../model/words.ts';

interface Health {
  readonly version: string;
  readonly uptimeMs: number;
  readonly pid?: number;
  readonly live?: number;
  readonly ended?: number;
  readonly parkedWaits?: number;
  readonly journalBytes?: number;
  readonly rssBytes?: number;
  readonly degraded?: number;
}

interface OwnerUse {
  readonly owner: string;
  readonly live: number;
  readonly ended: number;
  readonly bytes: number;
}

interface Facts {
  readonly health: Health;
  readonly owners: readonly OwnerUse[];
  readonly limits: Readonly<Record<string, number>>;
  readonly sessions: readonly Session[];
  /** Of a fleet, where this is the page of a gateway. */
  readonly hosts: readonly FleetHost[];
  /** The admin's page alone sees them. */
  readonly tokens: readonly Token[];
}

const REFRESH_MS = 5000;

export function HostPage() {
  const facts = useSignal<Partial<Facts>>({});
  const problem = useSignal<Problem | undefined>(undefined);
  const refresh = (): void => {
    void load().then(({ loaded, failed }) => {
      facts.value = { ...facts.value, ...loaded };
      problem.value = failed;
    });
  };
  useEffect(() => {
    refresh();
    const timer = setInterval(refresh, REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  const { value } = facts;
  return (
    <main class="page host">
      <h1>Host</h1>
      {problem.value && (
        <p class="problem" role="alert">
          {problem.value.message}
        </p>
      )}
      {value.hosts && <FleetHosts hosts={value.hosts} />}
      {value.health && <HealthTable {...value.health} />}
      {value.owners && <OwnerTable owners={value.owners} />}
      {value.sessions && (
        <SessionTable sessions={value.sessions} changed={refresh} problem={problem} />
      )}
      {value.tokens && <TokenTable tokens={value.tokens} changed={refresh} problem={problem} />}
      {value.limits && <LimitTable limits={value.limits} />}
    </main>
  );
}

/** Loads each part by itself: while a host of a fleet is away, totals of all hosts fail, and the table names that host. */
async function load(): Promise<{ loaded: Partial<Facts>; failed: Problem | undefined }> {
  const parts = await Promise.allSettled<Partial<Facts>>([
    ask<Health>('GET', '/v1/health').then((health) => ({ health })),
    ask<Pick<Facts, 'owners'>>('GET', '/v1/owners').then(({ owners }) => ({ owners })),
    ask<{ host: Facts['limits'] }>('GET', '/v1/limits').then(({ host }) => ({ limits: host })),
    ask<Pick<Facts, 'sessions'>>('GET', '/v1/sessions').then(({ sessions }) => ({ sessions })),
    ask<Pick<Facts, 'hosts'>>('GET', '/v1/hosts')
      .catch(forNobodyElse({ hosts: [] }))
      .then(({ hosts }) => ({ hosts })),
    ask<Pick<Facts, 'tokens'>>('GET', '/v1/tokens')
      .catch(forNobodyElse({ tokens: [] }))
      .then(({ tokens }) => ({ tokens })),
  ]);
  const failed = parts.find((part) => part.status === 'rejected');
  const found = parts.map((part) => (part.status === 'fulfilled' ? part.value : {}));
  return {
    loaded: Object.assign({}, ...found) as Partial<Facts>,
    failed: failed?.reason as Problem,
  };
}

/** What only an administrator sees is empty for others. */
function forNobodyElse<T>(nothing: T): (error: unknown) => T {
  return (error) => {
    if (error instanceof Problem && error.code === 'forbidden') return nothing;
    throw error;
  };
}

function HealthTable(health: Health) {
  const { live, ended, journalBytes, rssBytes, degraded, parkedWaits, pid } = health;
  const rows: [string, string | undefined][] = [
    ['version', health.version],
    ['keeper', pid === undefined ? undefined : `pid ${pid}`],
    ['up', durationText(health.uptimeMs)],
    ['processes', live === undefined ? undefined : `${live} live, ${ended} ended`],
    ['on disk', journalBytes === undefined ? undefined : bytesText(journalBytes)],
    ['memory', rssBytes === undefined ? undefined : bytesText(rssBytes)],
    ['waiting callers', parkedWaits === undefined ? undefined : countText(parkedWaits)],
    [
      'output not stored',
      degraded === undefined ? undefined : degraded === 0 ? 'none' : `of ${degraded} processes`,
    ],
  ];
  return (
    <section aria-labelledby="health">
      <h2 id="health">Health</h2>
      <dl class="facts">
        {rows.map(([name, text]) =>
          text === undefined ? null : (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{text}</dd>
            </div>
          ),
        )}
      </dl>
    </section>
  );
}

function OwnerTable({ owners }: { readonly owners: readonly OwnerUse[] }) {
  if (owners.length === 0) return null;
  return (
    <section aria-labelledby="owners">
      <h2 id="owners">Owners</h2>
      <table>
        <thead>
          <tr>
            <th scope="col">owner</th>
            <th scope="col" class="number">
              live
            </th>
            <th scope="col" class="number">
              ended
            </th>
            <th scope="col" class="number">
              output
            </th>
          </tr>
        </thead>
        <tbody>
          {owners.map(({ owner, live, ended, bytes }) => (
            <tr key={owner}>
              <td>{visibleText(owner)}</td>
              <td class="number">{countText(live)}</td>
              <td class="number">{countText(ended)}</td>
              <td class="number">{bytesText(bytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function LimitTable({ limits }: { readonly limits: Readonly<Record<string, number>> }) {
  return (
    <section aria-labelledby="limits">
      <h2 id="limits">Limits</h2>
      <dl class="facts">
        {Object.entries(limits).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{limitText(name, value)}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

/** Names of limits end with their unit. */
function limitText(name: string, value: number): string {
  if (name.endsWith('Bytes')) return bytesText(value);
  if (name.endsWith('Ms')) return durationText(value);
  return countText(value);
}
