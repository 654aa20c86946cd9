// The keyboard: each part of the page says which keys it takes while it is shown, and what they do. The newest part goes
// first. Single letters count only while nobody types into a field or a terminal.

import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { letterKeys } from './settings.ts';

export interface Key {
  /** As `KeyboardEvent.key`: "j", "Enter", "Ctrl+k"; or two letters one after the other: "g i". */
  readonly keys: string;
  /** Shown in the footer and in the help; a key without one is shown nowhere. */
  readonly label?: string;
  readonly run: () => void;
  /** Also works while a person types into a field. */
  readonly inFields?: true;
}

interface Layer {
  readonly keys: () => readonly Key[];
  /** Nothing below it gets a key: a dialog. */
  readonly modal: boolean;
}

const SEQUENCE_MS = 1200;
const layers = signal<readonly Layer[]>([]);
let first: { readonly key: string; readonly atMs: number } | undefined;

/** The keys are looked at when one is pressed: they may use whatever the component knows then. */
export function useKeys(keys: readonly Key[], { modal = false } = {}): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const layer: Layer = { keys: () => latest.current, modal };
    layers.value = [...layers.peek(), layer];
    return () => {
      layers.value = layers.peek().filter((each) => each !== layer);
    };
  }, [modal]);
}

/** Those that count now, the newest part's first. */
export function shownKeys(): Key[] {
  return reachable().filter(({ label }) => label !== undefined);
}

function reachable(): Key[] {
  const found: Key[] = [];
  for (const layer of layers.value.toReversed()) {
    found.push(...layer.keys());
    if (layer.modal) break;
  }
  return found;
}

addEventListener('keydown', (event) => {
  if (event.defaultPrevented || event.isComposing) return;
  const pressed = nameOf(event);
  const typing = isField(event.target);
  if (PRESSES.has(pressed) && isPressed(event.target)) return;
  const isLetter = pressed.length === 1;
  if (isLetter && letterKeys.peek() === 'off') return;
  const before = first && event.timeStamp - first.atMs < SEQUENCE_MS ? `${first.key} ` : '';
  const usable = reachable().filter((key) => !typing || key.inFields === true);
  const found =
    usable.find(({ keys }) => keys === before + pressed) ??
    usable.find(({ keys }) => keys === pressed);
  first = undefined;
  if (found) {
    event.preventDefault();
    found.run();
  } else if (!typing && usable.some(({ keys }) => keys.startsWith(`${pressed} `)))
    first = { key: pressed, atMs: event.timeStamp };
});

function nameOf({ key, ctrlKey, metaKey, altKey }: KeyboardEvent): string {
  const held = ctrlKey || metaKey ? 'Ctrl+' : altKey ? 'Alt+' : '';
  return held + (key === ' ' ? 'Space' : key);
}

/** A button or a link that has the focus is pressed by these. */
const PRESSES: ReadonlySet<string> = new Set(['Enter', 'Space']);

function isPressed(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('button, a[href], summary') !== null;
}

function isField(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    target.closest('input, textarea, select, [contenteditable], .xterm') !== null
  );
}
