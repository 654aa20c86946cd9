// The hosts of a fleet as its gateway sees them.

import { nowMs } from '../core/now.ts';
import { countText, durationText, visibleText } from '../model/words.ts';

export interface FleetHost {
  readonly name: string;
  readonly state: 'here' | 'silent' | 'cut' | 'conflict';
  readonly sinceMs: number;
  readonly version: string;
  readonly live: number;
  readonly load: number;
  readonly drain: boolean;
  readonly labels: Readonly<Record<string, string>>;
}

/** Those that are not well come first; a fleet may have thousands. */
const MOST_ROWS = 200;
const titles = ['host', 'state', 'since', 'version', 'live', 'load', 'labels'];
const words = {
  here: 'here',
  silent: 'silent',
  cut: 'disconnected',
  conflict: 'two servers use this name',
};

export function FleetHosts({ hosts }: { readonly hosts: readonly FleetHost[] }) {
  if (hosts.length === 0) return null;
  const isWell = ({ state }: FleetHost): boolean => state === 'here';
  const well = hosts.filter(isWell);
  const sorted = [...hosts.filter((host) => !isWell(host)), ...well];
  const shown = sorted.slice(0, MOST_ROWS);
  return (
    <section aria-labelledby="fleet">
      <h2 id="fleet">Hosts of the fleet</h2>
      <p>
        {countText(well.length)} of {countText(hosts.length)} are here.
        {shown.length < sorted.length && ` The first ${MOST_ROWS} are shown.`}
      </p>
      <table>
        <thead>
          <tr>
            {titles.map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((host) => (
            <Row key={host.name} {...host} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Row({ name, state, sinceMs, version, live, load, drain, labels }: FleetHost) {
  const since = durationText(Math.max(0, nowMs.value - sinceMs));
  const pairs = Object.entries(labels).map(([label, value]) => `${label}=${value}`);
  return (
    <tr>
      <td>{name}</td>
      <td>{state === 'here' && drain ? 'draining' : words[state]}</td>
      <td>{since}</td>
      <td>{visibleText(version)}</td>
      <td class="number">{countText(live)}</td>
      <td class="number">{load.toFixed(2)}</td>
      <td>{visibleText(pairs.join(' '))}</td>
    </tr>
  );
}
