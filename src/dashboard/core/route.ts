// Where in the page the person is: the fragment of the address, so that every place has a link and "back" works.

import { computed, signal } from '@preact/signals';

export interface Place {
  /** "p", "owner", "id", "log" */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
}

const hash = signal(location.hash);
addEventListener('hashchange', refreshPlace);

/** To be called when the address was replaced, of which browsers tell nothing. */
export function refreshPlace(): void {
  hash.value = location.hash;
}

export const place = computed<Place>(() => placeOf(hash.value));

function placeOf(fragment: string): Place {
  const [path = '', query = ''] = fragment.replace(/^#\/?/, '').split('?', 2);
  return {
    parts: path.split('/').filter(Boolean).map(decodePart),
    query: new URLSearchParams(query),
  };
}

export function linkTo(
  parts: readonly string[],
  query: Readonly<Record<string, string>> = {},
): string {
  const given = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ''));
  return `#/${parts.map(encodeURIComponent).join('/')}${given.size === 0 ? '' : `?${given.toString()}`}`;
}

export function go(link: string): void {
  location.hash = link;
}

/** Changes the query of this place without a step in the history. */
export function setQuery(query: Readonly<Record<string, string>>): void {
  history.replaceState(null, '', linkTo(place.value.parts, query));
  hash.value = location.hash;
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
