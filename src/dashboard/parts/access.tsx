// Who may ask: signed-in pages, shared links and tokens, each with the button that ends it.

import type { Signal } from '@preact/signals';
import { ask, Problem } from '../core/http.ts';
import { linkTo } from '../core/route.ts';
import { setStaysSignedIn, signedOut, staysSignedIn } from '../core/token.ts';
import { dateText, visibleText } from '../model/words.ts';

export interface Session {
  readonly id: string;
  readonly owner: string;
  readonly browser: string;
  readonly createdAtMs: number;
  readonly seenAtMs: number;
  readonly expiresAtMs: number;
  readonly current: boolean;
  /** A shared link: what it shows. */
  readonly only?: readonly string[];
}

export interface Token {
  readonly id: string;
  readonly owner: string;
  readonly createdAtMs: number;
  readonly expiresAtMs?: number;
}

interface SessionTableProps {
  readonly sessions: readonly Session[];
  readonly changed: () => void;
  readonly problem: Signal<Problem | undefined>;
}

export function SessionTable({ sessions, changed, problem }: SessionTableProps) {
  const revoke = ({ id, current }: Session): void => {
    ask('DELETE', `/v1/sessions/${id}`).then(current ? signedOut : changed, (error: unknown) => {
      problem.value = error as Problem;
    });
  };
  return (
    <section aria-labelledby="sessions">
      <h2 id="sessions">Signed-in pages and shared links</h2>
      <label class="choice">
        <input
          type="checkbox"
          checked={staysSignedIn.value}
          onChange={({ currentTarget }) => setStaysSignedIn(currentTarget.checked)}
        />
        Keep this browser signed in when its tab is closed
      </label>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Signed-in pages and links">
        <table class="access">
          <Head who="browser" sees="sees" />
          <tbody>
            {sessions.map((session) => (
              <tr key={session.id}>
                <td title={visibleText(session.browser)}>
                  {browserName(session.browser)}
                  {session.current && <span class="tag">this page</span>}
                </td>
                <td>
                  <Sees {...session} />
                </td>
                <td>{dateText(session.createdAtMs)}</td>
                <td>{dateText(session.expiresAtMs)}</td>
                <td>
                  <button type="button" onClick={() => revoke(session)}>
                    {session.current ? 'Sign out' : 'Revoke'}
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Head({ who, sees }: { readonly who: string; readonly sees: string }) {
  return (
    <thead>
      <tr>
        {[who, sees, 'since', 'until'].map((title) => (
          <th key={title} scope="col">
            {title}
          </th>
        ))}
        <th scope="col">
          <span class="unseen">action</span>
        </th>
      </tr>
    </thead>
  );
}

function Sees({ owner, only }: Session) {
  if (!only) return <>{owner === '*' ? 'all owners' : visibleText(owner)}</>;
  return (
    <>
      {only.map((id) => (
        <a key={id} href={linkTo(['p', owner, id])}>
          process {id.slice(0, 8)}
        </a>
      ))}
    </>
  );
}

interface TokenTableProps {
  readonly tokens: readonly Token[];
  readonly changed: () => void;
  readonly problem: Signal<Problem | undefined>;
}

export function TokenTable({ tokens, changed, problem }: TokenTableProps) {
  if (tokens.length === 0) return null;
  const revoke = (id: string): void => {
    ask('DELETE', `/v1/tokens/${id}`).then(changed, (error: unknown) => {
      problem.value = error as Problem;
    });
  };
  return (
    <section aria-labelledby="tokens">
      <h2 id="tokens">Tokens</h2>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Tokens">
        <table class="access">
          <Head who="token" sees="acts for" />
          <tbody>
            {tokens.map(({ id, owner, createdAtMs, expiresAtMs }) => (
              <tr key={id}>
                <td>
                  <code>{id}</code>
                </td>
                <td>{owner === '*' ? 'admin: all owners' : visibleText(owner)}</td>
                <td>{dateText(createdAtMs)}</td>
                <td>{expiresAtMs === undefined ? 'it is revoked' : dateText(expiresAtMs)}</td>
                <td>
                  <button
                    type="button"
                    aria-label={`Revoke token ${id}`}
                    onClick={() => revoke(id)}
                  >
                    Revoke
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** "Firefox 128" of what a browser says of itself at length. */
function browserName(agent: string): string {
  const [, name, version] =
    /(Edg|Firefox|HeadlessChrome|Chrome)\/(\d+)/.exec(agent) ??
    /(?:Version\/(?<v>\d+)).*(Safari)/.exec(agent) ??
    [];
  return name === undefined ? visibleText(agent).slice(0, 40) : `${name} ${version}`;
}
